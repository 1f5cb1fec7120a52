// PyTorch's autograd: which module's call memory is for, in forward and in backward, which node
// runs, and whether gradients are on. Nothing is registered with PyTorch.
//
//   Module._wrapped_call_impl     its frame is on the thread's chain, its first argument the module
//   sequence_number::get_and_increment   called by every node at its making: we note the module
//                                 under the number and the thread that the node keeps of it
//   get_current_node              the node that runs on this thread: its class, its number
//   GradMode, InferenceMode       switches of the thread
//
// No header of PyTorch is used. Where Node keeps its number depends on what it is derived from, and
// that its type information says itself; a Node that is derived from something else is not read.
#include "probe/hooks/torch_parts.h"

#include <string.h>

#include "probe/class_name.h"
#include "probe/dynamic.h"
#include "probe/hooks/host/host.h"
#include "probe/hot.h"
#include "probe/modules.h"
#include "probe/recorder.h"
#include "probe/surroundings.h"
#include "probe/work_notes.h"

#define HOOK extern "C" __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

namespace gpumemprof::probe {
namespace {

constexpr char kLibrary[] = "libtorch_cpu";

// ---- Modes -------------------------------------------------------------------------------------

HOT_DATA bool (*g_grad_is_enabled)();
HOT_DATA bool (*g_inference_is_enabled)();

enum Mode : uint64_t { kGradMode = 0, kNoGrad = 1, kInference = 2 };

// ---- Nodes -------------------------------------------------------------------------------------

/// Where a Node has what (torch/csrc/autograd/function.h, from 2.13 on node.h): a table, what the
/// base needs, then uint64 sequence_nr_, uint64 topological_nr_, bool has_parent_,
/// uint64 thread_id_.
struct NodeLayout {
  const char* base;        // class that Node is derived from
  uint32_t number;         // offset of sequence_nr_
  uint32_t thread;         // of thread_id_
  bool is_shared_pointer;  // held by std::shared_ptr, else by c10::intrusive_ptr
};
constexpr NodeLayout kNodeLayouts[] = {
    {"St23enable_shared_from_thisIN5torch8autograd4NodeEE", 24, 48, true},  // to 2.12
    {"N3c1020intrusive_ptr_targetE", 16, 40, false},                        // from 2.13 on
};

/// What get_current_node() returns, through a pointer that the caller hands it: a shared_ptr (node,
/// counts) or an intrusive_ptr (node alone, and `counts` is not written). It is a reference that
/// must be given back.
struct CurrentNode {
  const char* node;
  char* counts;
  CurrentNode(const CurrentNode&) = delete;
  ~CurrentNode();
};

struct Nodes {
  const NodeLayout* layout;
  CurrentNode (*current)();
  uint64_t (*thread_id)();
};
HOT_DATA constinit Nodes g_nodes_found{};
HOT_DATA constinit const Nodes* g_nodes = nullptr;

/// The thread itself holds another reference for as long as the node runs, so ours is never the
/// last one and there is nothing to destroy. Both kinds count in whole words at offset 8.
HOT CurrentNode::~CurrentNode() {
  if (!node) return;
  if (g_nodes->layout->is_shared_pointer) {
    if (counts) __atomic_fetch_sub(reinterpret_cast<uint32_t*>(counts + 8), 1, __ATOMIC_ACQ_REL);
  } else {
    __atomic_fetch_sub(reinterpret_cast<uint64_t*>(const_cast<char*>(node) + 8), 1,
                       __ATOMIC_ACQ_REL);
  }
}

/// The class that Node is derived from, by its type information: a class with one base that has
/// virtual functions as it has itself (__si_class_type_info), or with one that has none
/// (__vmi_class_type_info, with a count).
const char* base_of_node() {
  const void* info = find_real("_ZTIN5torch8autograd4NodeE", nullptr, kLibrary);
  const char* kind = info ? mangled_class(info) : nullptr;
  if (!kind) return nullptr;
  const void* base = nullptr;
  if (strcmp(kind, "N10__cxxabiv120__si_class_type_infoE") == 0) {
    base = load<const void*>(info, 16);
  } else if (strcmp(kind, "N10__cxxabiv121__vmi_class_type_infoE") == 0) {
    if (load<uint32_t>(info, 20) == 1) base = load<const void*>(info, 24);
  }
  return mangled_type(base);
}

__attribute__((noinline, cold)) void prepare_nodes() {
  static uint32_t is_looking;
  if (__atomic_exchange_n(&is_looking, 1, __ATOMIC_ACQ_REL)) return;
  const char* base = base_of_node();
  for (const NodeLayout& layout : kNodeLayouts) {
    if (base && strcmp(base, layout.base) == 0) g_nodes_found.layout = &layout;
  }
  g_nodes_found.current = reinterpret_cast<CurrentNode (*)()>(
      find_real("_ZN5torch8autograd16get_current_nodeEv", nullptr, kLibrary));
  g_nodes_found.thread_id = reinterpret_cast<uint64_t (*)()>(
      find_real("_ZN2at14RecordFunction15currentThreadIdEv", nullptr, kLibrary));
  if (!g_nodes_found.layout || !g_nodes_found.current || !g_nodes_found.thread_id) return;
  __atomic_store_n(&g_nodes, &g_nodes_found, __ATOMIC_RELEASE);
}

constinit WorkNotes g_notes;
thread_local uint64_t t_thread_id __attribute__((tls_model("initial-exec")));

HOT uint32_t module_of(const Nodes& nodes, const char* node) {
  return g_notes.get(load<uint64_t>(node, nodes.layout->number),
                     load<uint64_t>(node, nodes.layout->thread));
}

/// The module in which a node that is made now is made. Most are made a few frames inside of one.
HOT uint32_t module_now(const Nodes& nodes) {
  constexpr uint32_t kMostFrames = 128;
  bool unsafe = false, is_outside = false;
  const char* top = top_frame(&unsafe);
  // The stack of the first block of a module tells where its call's code is, but nodes may be made
  // before. Looked for at the first ones only, as there may be no modules at all.
  static uint32_t looks;
  if (UNLIKELY(top && watched_codes()->call.size == 0 &&
               __atomic_load_n(&looks, __ATOMIC_RELAXED) < 4096)) {
    __atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED);
    for (const char* f = top; f; f = load<const char*>(f, g_python.layout.frame_previous)) {
      if (load<uint8_t>(f, g_python.layout.frame_owner) < g_python.layout.skip_owner) {
        consider_frame(f);
      }
    }
  }
  if (const char* call = top ? find_call(top, kMostFrames, true, &is_outside) : nullptr) {
    const void* type = nullptr;
    const void* object = receiver_of(call, &type);
    return object ? module_number(object, type) : 0;
  }
  if (top && !is_outside) return 0;
  // The graph of a gradient: of the module of the node that makes it.
  const CurrentNode current = nodes.current();
  return current.node ? module_of(nodes, current.node) : 0;
}

HOT __attribute__((noinline)) void note(uint64_t number) {
  const Nodes* nodes = __atomic_load_n(&g_nodes, __ATOMIC_ACQUIRE);
  if (UNLIKELY(!nodes)) {
    prepare_nodes();
    nodes = __atomic_load_n(&g_nodes, __ATOMIC_ACQUIRE);
    if (!nodes) return;
  }
  if (UNLIKELY(!t_thread_id)) t_thread_id = nodes->thread_id();
  if (uint32_t module = module_now(*nodes)) g_notes.put(number, t_thread_id, module);
}

// ---- What the stacks are told ------------------------------------------------------------------

enum Word { kNodeTable = 0, kMode = 1 };

HOT void sense(Surroundings* out) {
  if (g_grad_is_enabled && !g_grad_is_enabled()) {
    out->words[kMode] = g_inference_is_enabled && g_inference_is_enabled() ? kInference : kNoGrad;
  }
  const Nodes* nodes = __atomic_load_n(&g_nodes, __ATOMIC_ACQUIRE);
  if (!nodes) return;
  const CurrentNode current = nodes->current();
  if (!current.node) return;
  out->is_in_work = true;
  out->words[kNodeTable] = load<uint64_t>(current.node, 0);
  out->module = module_of(*nodes, current.node);
}

uint32_t set_name(SurroundingName* out, const char* place, const char* text, size_t length) {
  out->place = place;
  out->length = static_cast<uint32_t>(length < sizeof(out->text) ? length : sizeof(out->text));
  memcpy(out->text, text, out->length);
  return out->length != 0;
}

uint32_t describe(const Surroundings& around, SurroundingName* out) {
  uint32_t n = 0;
  char text[sizeof(SurroundingName::text)];
  if (uint64_t table = around.words[kNodeTable]) {
    const char* name = mangled_class(&table);  // as of an object that begins with it
    size_t length = name ? last_part(name, text, sizeof(text)) : 0;
    if (length) n += set_name(&out[n], "<torch backward>", text, length);
    if (!length) n += set_name(&out[n], "<torch backward>", "unknown", strlen("unknown"));
  }
  static_assert(kMostModuleText <= sizeof(text));
  const uint32_t length = around.receiver ? module_text(around.receiver, around.receiver_type, text)
                                          : module_text(around.module, text);
  if (length) n += set_name(&out[n], "<torch module>", text, length);
  static constexpr const char* kModes[] = {"", "no grad", "inference"};
  const char* mode = kModes[around.words[kMode]];
  n += set_name(&out[n], "<torch mode>", mode, strlen(mode));
  return n;
}

const WatchedFunction kFunctions[] = {
    {"Module._wrapped_call_impl", "torch/nn/modules/module.py", nullptr, false},
    {"Module._call_impl", "torch/nn/modules/module.py", "Module._wrapped_call_impl", false},  // 1.x
    {"_engine_run_backward", "torch/autograd/graph.py", nullptr, true},  // from 2.3 on
    {"backward", "torch/autograd/__init__.py", "_engine_run_backward", true},
    {"grad", "torch/autograd/__init__.py", "_engine_run_backward", true},
};
const View kView{kFunctions, sizeof(kFunctions) / sizeof(kFunctions[0]), sense, describe};

__attribute__((constructor)) void enter() { g_view = &kView; }

// ---- The hook ----------------------------------------------------------------------------------

#define NEXT_NUMBER "_ZN2at15sequence_number17get_and_incrementEv"
HOT_DATA uint64_t (*g_next_number)();
uint64_t no_number() { return 0; }

void* find_next_number();

}  // namespace

void prepare_torch_modes() {
  g_inference_is_enabled = reinterpret_cast<bool (*)()>(
      find_real("_ZN3c1013InferenceMode10is_enabledEv", nullptr, "libc10"));
  g_grad_is_enabled =
      reinterpret_cast<bool (*)()>(find_real("_ZN3c108GradMode10is_enabledEv", nullptr, "libc10"));
  // Its shared memory is reported by PyTorch itself.
  if (const void* inside = find_next_number()) leave_file_maps_of(object_of(inside));
}

}  // namespace gpumemprof::probe

HOOK uint64_t gpumemprof_hook_next_number() __asm__(NEXT_NUMBER);
HOT uint64_t gpumemprof_hook_next_number() {
  using namespace gpumemprof::probe;
  auto real = __atomic_load_n(&g_next_number, __ATOMIC_ACQUIRE);
  if (UNLIKELY(!real)) {
    real = reinterpret_cast<decltype(real)>(find_next_number());
    if (!real) real = no_number;
  }
  const uint64_t number = real();
  if (state() == kRecording && g_config.wants_attribution()) note(number);
  return number;
}

namespace gpumemprof::probe {
namespace {

void* find_next_number() {
  if (auto known = __atomic_load_n(&g_next_number, __ATOMIC_ACQUIRE)) {
    return reinterpret_cast<void*>(known);
  }
  void* found =
      find_real(NEXT_NUMBER, reinterpret_cast<void*>(&gpumemprof_hook_next_number), kLibrary);
  if (found)
    __atomic_store_n(&g_next_number, reinterpret_cast<uint64_t (*)()>(found), __ATOMIC_RELEASE);
  return found;
}

}  // namespace

const Hook kAutogradHooks[1] = {
    {NEXT_NUMBER, reinterpret_cast<void*>(&gpumemprof_hook_next_number), find_next_number, false}};

}  // namespace gpumemprof::probe

// What autograd keeps for backward: the constructor of SavedVariable, which every node calls for
// each tensor that it saves (the other constructors call this one, through the same table).
//
// The object is the caller's, and the real constructor makes it; an exception of its own passes
// through. Afterwards we look at what the object holds: its first member is the tensor, or nothing
// where the program's own hooks (saved_tensors_hooks, checkpointing, offloading) took it.
//
// No header of PyTorch is used. Where a tensor has its storage, TensorImpl::has_storage() tells
// itself, asked of an object of ours in which one word after the other is set. A storage is told by
// the name of its class.
#include <string.h>

#include "probe/class_name.h"
#include "probe/dynamic.h"
#include "probe/hooks/torch_autograd.h"
#include "probe/hot.h"
#include "probe/python_frames.h"
#include "probe/recorder.h"
#include "probe/stream.h"

#define HOOK extern "C" __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SAVED "_ZN5torch8autograd13SavedVariableC1ERKN2at6TensorEbb"

namespace gpumemprof::probe {
namespace {

using Constructor = void (*)(void* self, const void* tensor, bool is_output, bool is_on_view);
HOT_DATA Constructor g_construct;

/// c10::TensorImpl and c10::StorageImpl are both derived from intrusive_ptr_target and nothing
/// else, and their first members are the storage and the data's pointer: both at the same offset.
/// Behind the storage a TensorImpl has its autograd metadata.
constexpr uint32_t kUnknown = 1;
HOT_DATA uint32_t g_first_member;  // 0: not looked for yet
HOT_DATA const char*
    g_storage_table;  // of the virtual functions of StorageImpl, that was seen last

uint32_t offset_of_storage(bool (*has_storage)(const void*)) {
  alignas(16) static uint64_t object[64];  // one thread; larger than what is asked about
  uint32_t found = 0;
  if (has_storage(object)) return 0;
  for (uint32_t i = 1; i < 16; ++i) {
    object[i] = 1;
    const bool is_it = has_storage(object);
    object[i] = 0;
    if (is_it && found) return 0;
    if (is_it) found = i * 8;
  }
  return found;
}

__attribute__((noinline, cold)) uint32_t find_first_member() {
  static uint32_t is_looking;
  if (__atomic_exchange_n(&is_looking, 1, __ATOMIC_ACQ_REL)) return kUnknown;
  auto has_storage = reinterpret_cast<bool (*)(const void*)>(
      find_real("_ZNK3c1010TensorImpl11has_storageEv", nullptr, "libc10"));
  uint32_t found = has_storage ? offset_of_storage(has_storage) : 0;
  if (!found) found = kUnknown;
  __atomic_store_n(&g_first_member, found, __ATOMIC_RELEASE);
  return found;
}

/// Several libraries may have a table of this class, so it is told by the name.
bool is_storage(const char* table, const void* object) {
  const char* name = mangled_class(object);
  if (!name || strcmp(name, "N3c1011StorageImplE") != 0) return false;
  __atomic_store_n(&g_storage_table, table, __ATOMIC_RELAXED);
  return true;
}

/// Where the storage of a tensor begins; 0 for tensors that have none in memory.
uint64_t storage_address(uint32_t first_member, const void* tensor_impl) {
  const void* storage = tensor_impl ? load<const void*>(tensor_impl, first_member) : nullptr;
  if (!storage) return 0;
  const char* table = load<const char*>(storage, 0);
  if (table != __atomic_load_n(&g_storage_table, __ATOMIC_RELAXED) && !is_storage(table, storage)) {
    return 0;
  }
  return load<uint64_t>(storage, first_member);
}

HOT __attribute__((noinline)) void tell(const void* saved, const void* tensor, bool is_output) {
  uint32_t first_member = __atomic_load_n(&g_first_member, __ATOMIC_ACQUIRE);
  if (UNLIKELY(!first_member)) first_member = find_first_member();
  if (first_member == kUnknown) return;
  const uint64_t address = storage_address(first_member, load<const void*>(saved, 0));
  if (!address) return;
  uint64_t flags = is_output ? format::kSavedIsOutput : 0;
  if (load<uint64_t>(load<const void*>(tensor, 0), first_member + 8)) {
    flags |= format::kSavedHasHistory;
  }
  record_mark(format::kMarkSaved, address, flags, nullptr, 0);
}

void* find_constructor();

}  // namespace
}  // namespace gpumemprof::probe

HOOK void gpumemprof_hook_saved(void*, const void*, bool, bool) __asm__(SAVED);
HOT void gpumemprof_hook_saved(void* self, const void* tensor, bool is_output, bool is_on_view) {
  using namespace gpumemprof::probe;
  auto real = __atomic_load_n(&g_construct, __ATOMIC_ACQUIRE);
  // Somebody called it, so somebody defines it.
  if (UNLIKELY(!real)) real = reinterpret_cast<Constructor>(find_constructor());
  real(self, tensor, is_output, is_on_view);
  if (state() == kRecording && g_config.wants_attribution()) {
    tell(self, tensor, is_output);
  }
}

namespace gpumemprof::probe {
namespace {

void* find_constructor() {
  if (auto known = __atomic_load_n(&g_construct, __ATOMIC_ACQUIRE)) {
    return reinterpret_cast<void*>(known);
  }
  void* found = find_real(SAVED, reinterpret_cast<void*>(&gpumemprof_hook_saved), "libtorch_cpu");
  if (found) {
    __atomic_store_n(&g_construct, reinterpret_cast<Constructor>(found), __ATOMIC_RELEASE);
  }
  return found;
}

}  // namespace

const Hook kSavedHooks[1] = {
    {SAVED, reinterpret_cast<void*>(&gpumemprof_hook_saved), find_constructor, false}};

}  // namespace gpumemprof::probe

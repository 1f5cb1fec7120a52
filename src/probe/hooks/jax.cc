// JAX on the CPU. Its allocator is not exported, but asks the C library for every buffer
// (posix_memalign, free), through the tables of libjax_common. Those two entries alone are changed,
// in that library alone, so nobody else's calls pass through here.
//
// The moment for that: jaxlib's Python module is a stub that calls Wrapped_PyInit__jax in
// libjax_common. The function is defined here too and comes first, which says that the library is
// there before anything was allocated.
//
// free() is also called for what was never a buffer, so the blocks are kept in a table, and what is
// not in it passes.
#include <errno.h>

#include "gpumemprof/gpumemprof.h"
#include "probe/counters.h"
#include "probe/dynamic.h"
#include "probe/framework.h"
#include "probe/got.h"
#include "probe/hooks/host/host.h"
#include "probe/recorder.h"
#include "probe/stream.h"

#define WRAPPED_INIT "Wrapped_PyInit__jax"
extern "C" __attribute__((visibility("default"))) void* gpumemprof_jax_init() __asm__(WRAPPED_INIT);

namespace gpumemprof::probe {
namespace {

using namespace format;

// Those that libjax_common would call: its references and ours are resolved alike.
extern "C" int posix_memalign(void**, size_t, size_t);
extern "C" void free(void*);

constexpr char kLibrary[] = "libjax_common";

constexpr uint8_t kFrameworkLayer = 1;  // Layer::kFramework
// The id lies above all that TensorFlow's allocators can have.
constexpr Memory kCpu = {0x4000, {GPUMEMPROF_JAX_CPU, 0}, kFrameworkLayer, true, ""};

/// Buffers that are live. A forked child finds it empty: its parent's are nobody's here.
LiveTable g_buffers;

inline bool is_wanted() { return state() != kOff || is_counting(); }
inline bool is_recorded() { return state() != kOff && !g_config.no_cpu; }

int on_memalign(void** out, size_t alignment, size_t size) {
  int error = posix_memalign(out, alignment, size);
  if (!is_wanted()) return error;
  if (error) {
    if (error == ENOMEM && is_recorded()) record_in(kRawOom, 0, size, kCpu, Label{});
    return error;
  }
  uint64_t address = reinterpret_cast<uintptr_t>(*out);
  Block old;
  if (g_buffers.put(address, {size, 0, 0}, &old) == LiveTable::kNoMemory) {
    count_loss(kLostNoBuffer);  // its free would not be seen either
    return error;
  }
  if (is_counting()) count_alloc(address, size, kCpu.device);
  if (is_recorded()) record_in(kRawAlloc, address, size, kCpu, Label{});
  return error;
}

void on_free(void* p) {
  Block block;
  uint64_t address = reinterpret_cast<uintptr_t>(p);
  // Before the real free: afterwards another thread may be given the address.
  if (p && g_buffers.take(address, &block)) {
    if (is_counting()) count_free(address, kCpu.device);
    if (is_recorded()) record_in(kRawFreeCompleted, address, 0, kCpu, Label{});
  }
  free(p);
}

using Init = void* (*)();
Init g_init;
uint32_t g_entries;  // of posix_memalign that lead here

Init find_init() {
  Init known = __atomic_load_n(&g_init, __ATOMIC_ACQUIRE);
  if (known) return known;
  known = reinterpret_cast<Init>(
      find_real(WRAPPED_INIT, reinterpret_cast<const void*>(&gpumemprof_jax_init), kLibrary));
  if (known) __atomic_store_n(&g_init, known, __ATOMIC_RELEASE);
  return known;
}

/// Has the library of `init` call us. Again and again is fine.
void enter_tables(Init init) {
  if (g_sandboxed) return;
  leave_blocks_of(object_of(reinterpret_cast<const void*>(&on_memalign)));  // the calls of ours
  Replacement table[] = {{"free", reinterpret_cast<void*>(&on_free), 0},
                         {"posix_memalign", reinterpret_cast<void*>(&on_memalign), 0}};
  const auto* inside = reinterpret_cast<const void*>(init);
  replace_in_object_of(inside, table, 1);  // frees first: see attach.cc
  if (table[0].count == 0) return;
  replace_in_object_of(inside, table, 2);
  __atomic_store_n(&g_entries, table[1].count, __ATOMIC_RELEASE);
}

/// Nothing is asked of JAX itself: it would make its devices, which is left to the program.
int ask_jax() {
  Init init = find_init();
  if (!init) return -1;
  enter_tables(init);
  return __atomic_load_n(&g_entries, __ATOMIC_ACQUIRE) != 0;
}

}  // namespace
}  // namespace gpumemprof::probe

void* gpumemprof_jax_init() {
  using namespace gpumemprof::probe;
  Init init = find_init();
  if (!init) return nullptr;  // cannot be: who calls this needs the library
  if (g_folder[0] || is_counting()) enter_tables(init);
  return init();
}

namespace gpumemprof::probe {
namespace {

const Hook kHooks[] = {{WRAPPED_INIT, reinterpret_cast<void*>(&gpumemprof_jax_init),
                        [] { return reinterpret_cast<void*>(find_init()); }, false}};

Framework g_jax{kHooks,
                sizeof(kHooks) / sizeof(kHooks[0]),
                "jaxlib's modules do not lead to libjax_common through a table",
                ask_jax,
                "libjax_common does not call posix_memalign and free through a table",
                nullptr};

__attribute__((constructor)) void enter() { enter_framework(&g_jax); }

}  // namespace
}  // namespace gpumemprof::probe

// A loop of nothing but allocator events, for bench/programs/hook_loop.py.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

namespace {

using Alloc = void* (*)(size_t);
using Free = void (*)(void*);
using ScopeBegin = uint64_t (*)(int, int, const void*);
using ScopeEnd = int (*)(uint64_t, void*);

constexpr size_t kSizeBytes = 256;

// As the dynamic linker would bind them: a preloaded library's definition comes before libc10's.
// torch is opened without RTLD_GLOBAL, so where nothing is preloaded libc10 is asked by its name.
void* find(const char* symbol) {
  if (void* found = dlsym(RTLD_DEFAULT, symbol)) return found;
  void* c10 = dlopen("libc10.so", RTLD_NOLOAD | RTLD_LAZY);
  return c10 ? dlsym(c10, symbol) : nullptr;
}

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

/// ns for one alloc and its free, averaged over `loops`; -1 where PyTorch's allocator is absent.
extern "C" __attribute__((visibility("default"))) double hook_loop_ns(uint64_t loops) {
  static const auto alloc = reinterpret_cast<Alloc>(find("_ZN3c109alloc_cpuEm"));
  static const auto release = reinterpret_cast<Free>(find("_ZN3c108free_cpuEPv"));
  if (!alloc || !release || loops == 0) return -1;
  const uint64_t begin_ns = now_ns();
  for (uint64_t i = 0; i < loops; ++i) release(alloc(kSizeBytes));
  return static_cast<double>(now_ns() - begin_ns) / static_cast<double>(loops);
}

/// ns for beginning and ending one scope of the CPU, averaged over `loops`; -1 where the probe is
/// absent or refuses. `context` as gpumemprof_scope_begin() takes it.
extern "C" __attribute__((visibility("default"))) double scope_loop_ns(uint64_t loops,
                                                                       const void* context) {
  static const auto begin = reinterpret_cast<ScopeBegin>(find("gpumemprof_scope_begin"));
  static const auto end = reinterpret_cast<ScopeEnd>(find("gpumemprof_scope_end"));
  if (!begin || !end || loops == 0) return -1;
  uint64_t result[16];  // larger than struct gpumemprof_scope_result
  const uint64_t begin_ns = now_ns();
  for (uint64_t i = 0; i < loops; ++i) {
    if (!end(begin(0, -1, context), result)) return -1;
  }
  return static_cast<double>(now_ns() - begin_ns) / static_cast<double>(loops);
}

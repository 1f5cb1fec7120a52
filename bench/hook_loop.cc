// A loop of nothing but allocator events, for bench/programs/hook_loop.py.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

namespace {

using Alloc = void* (*)(size_t);
using Free = void (*)(void*);

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

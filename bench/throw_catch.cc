// C++ exceptions through ten frames, for bench/programs/throw_catch.py.
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>
#include <unwind.h>

namespace {

struct Thrown {
  int depth;
};

// A destructor in every frame, as real code has: the unwinder must stop in each of them.
struct Guard {
  volatile int* count;
  ~Guard() { *count = *count + 1; }
};

volatile int destroyed = 0;

__attribute__((noinline)) int descend(int depth) {
  Guard guard{&destroyed};
  if (depth == 0) throw Thrown{depth};
  const int result = descend(depth - 1);
  return result + destroyed;  // after the call, so that it is no tail call
}

uint64_t now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

constexpr int kFrames = 10;

}  // namespace

/// ns for one throw and its catch, averaged over `throws`.
extern "C" __attribute__((visibility("default"))) double throw_catch_ns(uint64_t throws) {
  const uint64_t begin_ns = now_ns();
  for (uint64_t i = 0; i < throws; ++i) {
    try {
      descend(kFrames - 1);
    } catch (const Thrown&) {
    }
  }
  return static_cast<double>(now_ns() - begin_ns) / static_cast<double>(throws ? throws : 1);
}

/// The file whose _Unwind_RaiseException this library was bound to; valid until it is closed.
/// Anything but libgcc_s means that a profiler has put itself between the program and its
/// exceptions.
extern "C" __attribute__((visibility("default"))) const char* unwinder_path() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<void*>(&_Unwind_RaiseException), &info)) return "";
  return info.dli_fname;
}

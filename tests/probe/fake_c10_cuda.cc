// Stands in for libc10_cuda: an allocator object with as many functions as PyTorch 2.13's, which
// calls its trackers and reports as that does, or as it never should. Nothing is allocated.
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace c10 {
struct Device {
  int8_t type, index;
};
void reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, Device);
void reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device);
}  // namespace c10

namespace c10::cuda::CUDACachingAllocator {

struct TraceEntry {
  int action;
  int8_t device;
  size_t address;
  void* context[2];
  void* stream;
  size_t size;
  uint64_t pool[2];
};
using Tracker = std::function<void(const TraceEntry&)>;

#define FILLER(n) \
  virtual void filler##n() {}
#define TEN(n)                                                                               \
  FILLER(n##0)                                                                               \
  FILLER(n##1) FILLER(n##2) FILLER(n##3) FILLER(n##4) FILLER(n##5) FILLER(n##6) FILLER(n##7) \
      FILLER(n##8) FILLER(n##9)

namespace Native {
#ifndef CLASS
#define CLASS NativeCachingAllocator
#endif
class CLASS {
 public:
  TEN(0)
  TEN(1) TEN(2) TEN(3) FILLER(40) FILLER(41) FILLER(42) FILLER(43) FILLER(44) FILLER(45) FILLER(46)
      FILLER(47) virtual void attachAllocatorTraceTracker(Tracker tracker) {
    trackers.push_back(tracker);
  }
  FILLER(49)
  FILLER(50) FILLER(51) FILLER(52) FILLER(53) FILLER(54)
#ifdef ONE_MORE
      FILLER(55)
#endif
          std::vector<Tracker> trackers;
};
}  // namespace Native

Native::CLASS g_native;
void* allocator = &g_native;

static void tell(int action, size_t address, size_t size) {
  const TraceEntry entry{action, 0, address, {}, reinterpret_cast<void*>(64), size, {0, 7}};
  for (const Tracker& tracker : g_native.trackers) tracker(entry);
}

/// A segment, three blocks of it, one freed at once and one later, a refusal; `wrong` says what is
/// not as it should be.
void run(const char* wrong) {
  constexpr size_t kBase = 0x7f0000000000, kSegment = 2 << 20;
  const auto is = [&](const char* name) { return std::strcmp(wrong, name) == 0; };
  const Device device{1, 0};
  const size_t reserved = is("reserved") ? kSegment * 2 : kSegment;
  const auto report = [&](size_t address, int64_t size, size_t allocated) {
    reportMemoryUsageToProfiler(reinterpret_cast<void*>(address), size, allocated, reserved,
                                device);
  };
  tell(3, kBase, kSegment);
  for (size_t i = 0; i < 3; ++i) {
    const size_t address = kBase + 1024 * i;
    tell(0, is("address") ? address + 512 : address, is("size") ? 5000 : 1000 + i);
    report(address, 1024, 1024 * (i + 1));
  }
  tell(1, kBase, 1000), tell(2, kBase, 1000);
  report(kBase, -1024, 2048);
  tell(1, kBase + 1024, 1001);
  report(kBase + 1024, -1024, 1024);
  tell(8, 4096, 1 << 20);
  reportOutOfMemoryToProfiler(1 << 20, 1024, reserved, device);
  tell(2, kBase + 1024, 1001);
}

// For programs that say themselves what happens, in one segment of 2 MiB.
static size_t g_allocated = 0;
constexpr size_t kHeld = 2 << 20;

static size_t rounded(size_t asked) { return (asked + 511) / 512 * 512; }

static void report_change(size_t address, int64_t size) {
  g_allocated += size;
  reportMemoryUsageToProfiler(reinterpret_cast<void*>(address), size, g_allocated, kHeld, {1, 0});
}

void begin(size_t base) { tell(3, base, kHeld); }

void make(size_t address, size_t asked) {
  tell(0, address, asked);
  report_change(address, static_cast<int64_t>(rounded(asked)));
}

/// `is_delayed`: a stream still uses it, until complete().
void drop(size_t address, size_t asked, bool is_delayed) {
  tell(1, address, asked);
  if (!is_delayed) tell(2, address, asked);
  report_change(address, -static_cast<int64_t>(rounded(asked)));
}

void complete(size_t address, size_t asked) { tell(2, address, asked); }

}  // namespace c10::cuda::CUDACachingAllocator

namespace c10::cuda::detail {
void init_p2p_access_cache(int64_t) {}
}  // namespace c10::cuda::detail

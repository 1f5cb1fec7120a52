// Stands in for libc10: the functions that the probe interposes, in every signature that PyTorch
// has had. Each counts its calls, so that a test sees that the probe passes every call on, once,
// unchanged.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace c10 {
struct Device {
  int8_t type, index;
};

struct Seen {
  long calls = 0, sum = 0;
};
Seen g_seen[7];
static void see(int which, long a, long b, long c, Device d) {
  g_seen[which].calls += 1;
  g_seen[which].sum += a + 3 * b + 7 * c + 1000003 * d.type + 10000019 * d.index;
}

__attribute__((noinline)) void reportMemoryUsageToProfiler(void* p, int64_t n, size_t a, size_t r,
                                                           Device d) {
  see(0, n, a, r, d);
  (void)p;
}
__attribute__((noinline)) void reportMemoryUsageToProfiler(void* p, int64_t n, int64_t a, int64_t r,
                                                           Device d) {
  see(1, n, a, r, d);
  (void)p;
}
__attribute__((noinline)) void reportMemoryUsageToProfiler(void* p, int64_t n, Device d) {
  see(2, n, 0, 0, d);
  (void)p;
}
__attribute__((noinline)) void reportOutOfMemoryToProfiler(int64_t n, size_t a, size_t r,
                                                           Device d) {
  see(3, n, a, r, d);
}
__attribute__((noinline)) void reportOutOfMemoryToProfiler(int64_t n, int64_t a, int64_t r,
                                                           Device d) {
  see(4, n, a, r, d);
}
__attribute__((noinline)) void reportOutOfMemoryToProfiler(size_t n, size_t a, size_t r, Device d) {
  see(5, n, a, r, d);
}

__attribute__((noinline)) void* alloc_cpu(size_t n) {
  void* p = nullptr;
  return posix_memalign(&p, 64, n) == 0 ? p : nullptr;
}
__attribute__((noinline)) void free_cpu(void* p) {
  see(6, 1, 0, 0, Device{0, 0});
  free(p);
}

// What the CPU allocator does while a profiler runs: allocate, and report what alloc_cpu has told
// already.
void* allocate_while_profiling(size_t n) {
  void* p = alloc_cpu(n);
  reportMemoryUsageToProfiler(p, static_cast<int64_t>(n), size_t{n}, size_t{0}, Device{0, -1});
  return p;
}
void print_seen() {
  for (const Seen& s : g_seen) std::printf("%ld %ld\n", s.calls, s.sum);
}
}  // namespace c10

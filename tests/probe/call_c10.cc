// A program against fake_c10.cc: one event of every kind, from outside libc10.
#include <cstddef>
#include <cstdint>

namespace c10 {
struct Device {
  int8_t type, index;
};
void reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, Device);
void reportMemoryUsageToProfiler(void*, int64_t, int64_t, int64_t, Device);
void reportMemoryUsageToProfiler(void*, int64_t, Device);
void reportOutOfMemoryToProfiler(int64_t, size_t, size_t, Device);
void reportOutOfMemoryToProfiler(int64_t, int64_t, int64_t, Device);
void reportOutOfMemoryToProfiler(size_t, size_t, size_t, Device);
void* alloc_cpu(size_t);
void free_cpu(void*);
void* allocate_while_profiling(size_t);
void print_seen();
}  // namespace c10

template <class T>
static void* at(T address) {
  return reinterpret_cast<void*>(static_cast<uintptr_t>(address));
}

int main() {
  using c10::Device;
  const Device cuda0{1, 0}, cuda1{1, 1}, npu{20, 0}, cpu{0, -1};
  c10::reportMemoryUsageToProfiler(at(0x7f0000000000), int64_t{512}, size_t{512}, size_t{2097152},
                                   cuda0);
  c10::reportMemoryUsageToProfiler(at(0x7f0000100000), int64_t{1024}, int64_t{1024},
                                   int64_t{2097152}, cuda1);
  c10::reportMemoryUsageToProfiler(at(0x7f0000200000), int64_t{1536}, npu);
  // 200 GiB in one block, 300 GiB and a bit reserved: more than the short record's size field
  // holds.
  c10::reportMemoryUsageToProfiler(at(0x7e0000000000), int64_t{214748364800}, size_t{214748365312},
                                   size_t{322122547712}, cuda0);
  c10::reportMemoryUsageToProfiler(at(0x7e0000000000), int64_t{-214748364800}, size_t{512},
                                   size_t{322122547712}, cuda0);
  c10::reportMemoryUsageToProfiler(at(0x7d0000000000), int64_t{777}, size_t{0}, size_t{0},
                                   cpu);  // shared memory
  c10::reportMemoryUsageToProfiler(at(0x7d0000000000), int64_t{-777}, size_t{0}, size_t{0}, cpu);
  c10::reportOutOfMemoryToProfiler(int64_t{5000000000}, size_t{1}, size_t{2}, cuda0);
  c10::reportOutOfMemoryToProfiler(int64_t{5000000001}, int64_t{1}, int64_t{2}, cuda1);
  c10::reportOutOfMemoryToProfiler(size_t{5000000002}, size_t{1}, size_t{2}, npu);
  void* a = c10::alloc_cpu(333);
  void* b = c10::allocate_while_profiling(444);
  c10::free_cpu(b);
  c10::free_cpu(a);
  c10::print_seen();
}

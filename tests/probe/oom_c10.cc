// A C++ program with libc10: one allocation that succeeds and one that cannot.
#include <cstddef>
#include <cstdio>

namespace c10 {
void* alloc_cpu(size_t size);
void free_cpu(void* data);
}  // namespace c10

int main() {
  c10::free_cpu(c10::alloc_cpu(1000));
  try {
    std::printf("%p\n", c10::alloc_cpu(size_t{1} << 60));
  } catch (...) {
    std::puts("thrown");
  }
}

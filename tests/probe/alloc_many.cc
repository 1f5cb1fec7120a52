// Allocates blocks of 1000, 1001, … bytes through c10::alloc_cpu and keeps them. Arguments: how
// many.
#include <cstddef>
#include <cstdio>
#include <cstdlib>

namespace c10 {
void* alloc_cpu(size_t);
}

int main(int, char** argv) {
  for (int i = 0; i < std::atoi(argv[1]); ++i) {
    if (!c10::alloc_cpu(static_cast<size_t>(1000 + i))) return 1;
  }
  std::puts("done");
  return 7;
}

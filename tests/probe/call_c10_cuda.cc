// A program against fake_c10_cuda.cc: sets up CUDA as PyTorch does, unless told "late", and runs.
#include <cstdint>
#include <cstdio>
#include <cstring>

namespace c10::cuda::detail {
void init_p2p_access_cache(int64_t);
}
namespace c10::cuda::CUDACachingAllocator {
void run(const char*);
}

int main(int argc, char** argv) {
  const char* wrong = argc > 1 ? argv[1] : "";
  if (std::strcmp(wrong, "late") != 0) c10::cuda::detail::init_p2p_access_cache(2);
  c10::cuda::CUDACachingAllocator::run(wrong);
  std::puts("done");
}

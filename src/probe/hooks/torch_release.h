// Which release of PyTorch's CUDA allocator is loaded, and how it is asked for its history.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace gpumemprof::probe {

struct TorchAllocator {
  void* allocator;  // null: cannot be followed
  void (*attach)(void* allocator, void* function);
  uint32_t minor;  // 13 is 2.13; 0: not known
  bool has_pools;  // its trace entries name the memory pool
};

/// Looks at the loaded libc10_cuda: `version` gets the release's name ("2.13.0+cu130"; "" where it
/// is not known). Where the allocator cannot be followed `*why` says so in one phrase. Called once,
/// with no lock held.
TorchAllocator find_torch_allocator(char* version, size_t size, const char** why);

}  // namespace gpumemprof::probe

// The loaded release of PyTorch's CUDA allocator, and how to get its history.
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

/// Inspects the loaded libc10_cuda: `version` gets the release's name ("2.13.0+cu130"; "" if
/// unknown). If the history cannot be recorded `*why` has the reason, in one phrase. Called once,
/// with no lock held.
TorchAllocator find_torch_allocator(char* version, size_t size, const char** why);

}  // namespace gpumemprof::probe

// What the files of PyTorch's hooks ask of each other.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "probe/framework.h"
#include "probe/stream.h"

namespace gpumemprof::probe {

// Autograd's state at the moment of an allocation; see torch_autograd.cc.

extern const Hook kAutogradHooks[1];
extern const Hook kSavedHooks[1];  // torch_saved.cc
extern const Hook kCopyHooks[1];   // torch_copied.cc
extern const Hook kCollectiveHooks[4];  // torch_collectives.cc

/// Looks up the functions that tell whether gradients are on; once, at the first call through
/// libc10.
void prepare_torch_modes();

// PyTorch's CUDA caching allocator tells its own history: segments, streams, requested sizes. What
// it says is joined with what it reports to the profiler (torch.cc), so a block counts once.
//
//   CUDA is set up ──▶ release known? table of functions as it should be? ──▶ our tracker is
//   attached tracker: alloc, free        kept by the thread until the report of the same call comes
//            segment …          recorded at once
//   report:  the same address, what is reserved equal to the sum of segments ──▶ recorded together
//            anything else      the tracker is off from here on, and the file says why

/// What the tracker reported for the allocation, free or refusal that is now being profiled on this
/// thread; null if the allocator's history is not recorded. `reserved`: as reported. Called with
/// the device's lock held.
const AllocatorSays* cuda_says_of_alloc(uint64_t address, uint64_t size, uint64_t reserved,
                                        Device device);
const AllocatorSays* cuda_says_of_free(uint64_t address, uint64_t reserved, Device device);
const AllocatorSays* cuda_says_of_oom(Device device);

/// Replacements of the functions that PyTorch calls right after it has initialized CUDA, with no
/// lock held and nothing allocated.
inline constexpr uint32_t kCudaHookCount = 2;
extern const Hook kCudaHooks[kCudaHookCount];

// The loaded release of PyTorch's CUDA allocator, and how to get its history.

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

// Where the storage of a tensor begins, and what autograd has said of it.
//
// No header of PyTorch is used. To find where a tensor keeps its storage, TensorImpl::has_storage()
// is called on a made-up object in which one word after the other is set. A storage is recognised by
// the name of its class.

/// For a c10::TensorImpl or null; 0 for tensors without storage in memory.
uint64_t storage_address(const void* tensor_impl);

/// For one with a storage: a leaf that requires grad, an operation's result, or a view.
bool has_autograd_metadata(const void* tensor_impl);

/// For one with a storage. True if this PyTorch does not report it.
bool requires_grad(const void* tensor_impl);

}  // namespace gpumemprof::probe

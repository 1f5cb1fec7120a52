// PyTorch's CUDA caching allocator tells its own history: segments, streams, requested sizes. What
// it says is joined with what it reports to the profiler (torch.cc), so a block counts once.
//
//   CUDA is set up ──▶ release known? table of functions as it should be? ──▶ our tracker is
//   attached tracker: alloc, free        kept by the thread until the report of the same call comes
//            segment …          recorded at once
//   report:  the same address, what is reserved equal to the sum of segments ──▶ recorded together
//            anything else      the tracker is off from here on, and the file says why
#pragma once

#include <stdint.h>

#include "probe/framework.h"
#include "probe/stream.h"

namespace gpumemprof::probe {

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

}  // namespace gpumemprof::probe

// Why a recorded allocator gave memory back. The only place that decides it.
#pragma once

#include <cstdint>

#include "trace/allocator_trace.h"

namespace gpumemprof {

enum class ReleaseCause : uint8_t { kCacheEmptied, kRetry, kUnclear };

/// Whether it is memory that goes back to the driver.
bool gives_back(Action action);

/// Of a run of events that give back, which begins at event `index`. A retry gives back and then
/// tries again, within one allocation and so with one stack; empty_cache() has a stack of its own.
ReleaseCause release_cause(const AllocatorTrace& trace, uint64_t index);

}  // namespace gpumemprof

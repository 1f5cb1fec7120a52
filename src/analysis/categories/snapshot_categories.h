// What the memory of a PyTorch snapshot is, by rules: a snapshot has stacks, lives of blocks and
// annotations, but nothing that says what a tensor is for.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/categories/category_holder.h"
#include "trace/allocator_trace.h"
#include "trace/trace_start.h"

namespace gpumemprof {

class BlockKeeper;

/// Reads the events of `snapshot.traces[index]`, which begins with `start`, once. `peak_event` is
/// the one after which most was live (absent: before the first), `peak_bytes` what it was: where
/// the blocks do not add up to it, as in a trace that contradicts itself, nothing is known. Memory
/// O(live blocks + distinct stacks and sizes). In traces without times there is no timeline.
/// `keeper` is told what the blocks of `device` become; may be null.
DeviceCategories categories_of_trace(const AllocatorSnapshot& snapshot, size_t index,
                                     const TraceStart& start, std::optional<uint64_t> peak_event,
                                     uint64_t peak_bytes, uint16_t device = 0,
                                     BlockKeeper* keeper = nullptr);

/// What the rules make of each block that the trace allocates, in the order of its allocations.
std::vector<RuledBlock> rules_of_trace(const AllocatorSnapshot& snapshot, size_t index,
                                       const TraceStart& start);

}  // namespace gpumemprof

// Segments that go back to the device and come again, over and over.
#pragma once

#include <optional>

#include "analysis/finding.h"
#include "analysis/replay/snapshot_device.h"
#include "trace/allocator_trace.h"
#include "trace/tables.h"

namespace gpumemprof {

/// "cache_slack" by the name kSegmentChurn: where three times the reserved peak or more was freed
/// in segments, 32 MiB at least. Says whether stacks have empty_cache() freeing half of them or
/// more. Asks for a consistent replay.
std::optional<Finding> find_segment_churn(const AllocatorTrace& trace, const Tables& tables,
                                          const SnapshotDevice& device);

}  // namespace gpumemprof

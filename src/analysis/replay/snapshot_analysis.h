// All devices of a snapshot: what recordings are asked, and what only an allocator's history tells.
#pragma once

#include "analysis/analysis.h"
#include "analysis/replay/snapshot_device.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// Analyses each device by itself: event numbers count in the device's own trace. Every device of
/// the result has its `snapshot` part, those without events too. `snapshot` must outlive the call
/// only. Memory O(live blocks + distinct stacks) beside the snapshot's own.
Result<Analysis> analyze_snapshot(const AllocatorSnapshot& snapshot,
                                  const SnapshotAnalysisOptions& options);

/// The index in `snapshot.traces` of the device to answer for: the first that ran out of memory,
/// else the one that has reserved most in the end. Absent where there is none.
std::optional<size_t> main_trace(const AllocatorSnapshot& snapshot);

}  // namespace gpumemprof

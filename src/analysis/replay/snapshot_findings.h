// Findings of a replayed snapshot.
#pragma once

#include <vector>

#include "analysis/finding.h"
#include "analysis/replay/snapshot_device.h"

namespace gpumemprof {

/// Appends, for one device: "out_of_memory" or "refused_though_it_fits", "inconsistent_trace",
/// "replay_mismatch", "fragmentation" (also by the name "variable_shapes"), "cache_slack" (also
/// "cache_not_returned"), "rounding", and SnapshotDevice::troubles. Nothing is said of bytes where the
/// replay does not end as the file says. Thresholds are in docs/commands/analyze.md.
void add_snapshot_findings(const SnapshotDevice& device, uint16_t index,
                           std::vector<Finding>* findings);

}  // namespace gpumemprof

// Settings of the allocator that work against each other.
#pragma once

#include <optional>

#include "analysis/finding.h"
#include "analysis/replay/snapshot_device.h"
#include "trace/allocator_trace.h"
#include "trace/trace_start.h"

namespace gpumemprof {

/// "settings_conflict": expandable segments with max_split_size_mb, where the same requests need
/// 32 MiB and a 20th of the reserved peak less with one of them alone. Both are simulated. Asks for
/// a consistent replay.
std::optional<Finding> find_settings_conflict(const AllocatorTrace& trace, const TraceStart& start,
                                              const RecordedSettings& settings,
                                              const SnapshotDevice& device);

}  // namespace gpumemprof

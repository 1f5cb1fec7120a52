// The parts of the analysis of a snapshot that recordings do not have, for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "analysis/analysis.h"
#include "analysis/replay/snapshot_device.h"

namespace gpumemprof {

/// Puts into a device of json_report() what the replay knows: peaks in requested and allocated
/// bytes with indexes in the device's own trace, the end as the segments have it, replay,
/// fragmentation, ooms. `unknown` gains a reason for each that is null.
void add_snapshot_json(const DeviceAnalysis& device, const Analysis& analysis, const Tables& tables,
                       nlohmann::ordered_json* out, nlohmann::ordered_json* unknown);

/// The axis, and the levels that only a replay knows.
void add_snapshot_timeline(const SnapshotDevice& snapshot, nlohmann::ordered_json* timeline);

}  // namespace gpumemprof

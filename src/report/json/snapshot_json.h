// The parts of the analysis of a snapshot that recordings do not have, for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Puts into a device of json_report() what the replay knows: peaks in requested and allocated
/// bytes with indexes in the device's own trace, the end as the segments have it, replay,
/// fragmentation, ooms, timelines. `unknown` loses and gains reasons accordingly.
void add_snapshot_json(const DeviceAnalysis& device, const Analysis& analysis, const Tables& tables,
                       nlohmann::ordered_json* out, nlohmann::ordered_json* unknown);

}  // namespace gpumemprof

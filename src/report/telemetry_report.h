// What `analyze` says of telemetry: for people and for programs.
#pragma once

#include <string>

#include "analysis/series/telemetry_series.h"

namespace gpumemprof {

/// Safe for a terminal whatever the file holds.
std::string telemetry_text(const TelemetryAnalysis& analysis);

/// Schema "gpumemprof.analysis/1" with source.kind "telemetry": `devices` has no entry, since there
/// are no events; `series` has what samples tell. A finding's `kind` is its type.
std::string telemetry_json_report(const TelemetryAnalysis& analysis);

}  // namespace gpumemprof

// What a report says of telemetry.
#pragma once

#include "analysis/series/telemetry_series.h"
#include "report/document.h"

namespace gpumemprof {

/// `analysis` has to live as long as the document: its charts draw from it.
Document describe_samples(const TelemetryAnalysis& analysis);

}  // namespace gpumemprof

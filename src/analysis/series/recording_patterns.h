// The shape of memory over time in a recording: steady growth, sawtooth, spikes, with the periods
// found, and the score. The statistics are those of samples (docs/scores.md); what they look at
// here is exact: the levels of every step, or of every bucket of the timeline, and every turn.
#pragma once

#include <optional>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Fills `patterns` and `score` of every device and sum, and `score` of the analysis, the worst of
/// them; adds the patterns to the findings, which must have the leaks by now. `capacity_bytes`: how
/// much memory there is, where that was said.
void add_patterns(const Tables& tables, std::optional<uint64_t> capacity_bytes, Analysis* analysis);

}  // namespace gpumemprof

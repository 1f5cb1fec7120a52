// The shape of memory over time in a recording: steady growth, sawtooth, spikes, with the periods
// found, and the score. The statistics are those of samples (docs/scores.md); what they look at
// here is exact: the levels of every step, or of every bucket of the timeline, and every turn.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Fills `patterns` and `score` of every device and sum, and `score` of the analysis, the worst of
/// them; adds the patterns to the findings, which must have the leaks by now. `capacity_bytes`: how
/// much memory there is, where that was said.
void add_patterns(const Tables& tables, std::optional<uint64_t> capacity_bytes, Analysis* analysis);

// The line behind steady growth, or the command that would name it.

/// Of what was made since the set-up and stayed, the line that made most of it; where that is not
/// known, the line that held most at the end. Adds it to the title, stack and evidence. False where
/// it is less than half of `grown_bytes`.
bool name_growing_line(const DeviceAnalysis& device, const Tables& tables, double grown_bytes,
                       Finding* finding);

/// What names the lines where nothing has named one.
std::string fix_of_growth(const DeviceAnalysis& device);

// What several processes of a run show alike, or too little of to be told.

/// Workers do what their fellows do: of what is no warning the largest is told, with how many
/// processes have the like. DeviceAnalysis::patterns has all.
void fold_like_findings(const Tables& tables, std::vector<Finding>* found);

/// The device of each type, in all processes, whose peak is the highest.
using HighestOfType = std::map<int8_t, const DeviceAnalysis*>;

/// A worker's buffer of a batch is no news beside the memory that the program needs: an info finding
/// of another device that is below 5 % of the highest peak of its type. DeviceAnalysis::patterns has
/// all.
void drop_small_findings(const HighestOfType& highest, const Tables& tables,
                         std::vector<Finding>* found);

}  // namespace gpumemprof

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
#include "analysis/series/series.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Fills `patterns` and `score` of every device and sum, and `score` of the analysis, the worst of
/// them; adds the patterns to the findings, which must have the leaks by now. `capacity_bytes`: how
/// much memory there is, where that was said.
void add_patterns(const Tables& tables, std::optional<uint64_t> capacity_bytes, Analysis* analysis);

// The levels of a recording over time: of each step of the program, or of each bucket of the timeline.

/// What the questions of add_patterns() are asked of.
struct RecordingLevels {
  bool are_steps = false;
  std::vector<double> times_s, floor;
  uint64_t ceiling_start_ns = 0;  // what ceiling_times_s count from
  std::vector<double> ceiling_times_s, ceiling;
  bool are_buckets = false;  // of the ceiling: of no rule when one ends
  std::vector<uint64_t> steps;  // number of the last step of each
  uint64_t steps_a_level = 1;
  double step_s = 0;  // how long one takes; 0: not known
};

RecordingLevels levels_of_steps(const StepLevels& known);
/// The floor to the last allocation, when `last_bytes` were live: what is freed later, the program
/// frees as it ends.
RecordingLevels levels_of_timeline(const Timeline& timeline, uint64_t last_bytes);

/// Of levels that are no steps: fewer than 12 rises of the floor, as in the search for leaks, or all
/// of them within a second.
bool rises_as_a_program_begins(const RecordingLevels& levels);
/// Likewise, what is never given back rises in the last third, too, and in no one jump: so few
/// rises tell neither that it grows nor that it does not.
bool rises_to_the_end(const RecordingLevels& levels);

/// At least three steps, over half of the time: what goes up and down is counted by them.
bool steps_span_the_run(const DeviceAnalysis& device);
/// In how many steps a moment lies behind the first.
double steps_before(const StepLevels& known, uint64_t time_ns);
/// Rises from the lowest quarter of what a step moves to its highest: how many there are in
/// nearly every step, and how high the least of a step usually is. Of no more than one, or of
/// another number from step to step: none.
Cycles cycles_within_steps(const DeviceAnalysis& device);

/// 0 where the later is the earlier.
inline double seconds_between(uint64_t later_ns, uint64_t earlier_ns) {
  return later_ns > earlier_ns ? static_cast<double>(later_ns - earlier_ns) * 1e-9 : 0;
}

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

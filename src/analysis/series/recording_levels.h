// The levels of a recording over time: of each step of the program, or of each bucket of the timeline.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/series/series.h"

namespace gpumemprof {

/// What the questions of recording_patterns.h are asked of.
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

}  // namespace gpumemprof

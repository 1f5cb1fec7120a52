#include "analysis/series/recording_levels.h"

#include <utility>

#include "analysis/statistics/statistics.h"

namespace gpumemprof {

RecordingLevels levels_of_steps(const StepLevels& known) {
  RecordingLevels out{.are_steps = true};
  std::vector<double> durations;
  const std::vector<StepLevel>& levels = known.levels();
  out.steps_a_level = known.steps_a_level();
  for (size_t i = 0; i < levels.size(); ++i) {
    out.times_s.push_back(seconds_between(levels[i].end_ns, levels[0].end_ns));
    // What is kept is live at every moment; what a step ends with may go before the next.
    out.floor.push_back(static_cast<double>(levels[i].least_bytes));
    out.ceiling.push_back(static_cast<double>(levels[i].most_bytes));
    out.steps.push_back(levels[i].step);
    if (i != 0) durations.push_back(out.times_s[i] - out.times_s[i - 1]);
  }
  out.ceiling_times_s = out.times_s;
  out.step_s = median(std::move(durations)) / static_cast<double>(out.steps_a_level);
  return out;
}

RecordingLevels levels_of_timeline(const Timeline& timeline) {
  RecordingLevels out{.ceiling_start_ns = timeline.start_ns(), .are_buckets = true};
  const double width = static_cast<double>(timeline.bucket_ns()) * 1e-9;
  for (const TimelineBucket& bucket : timeline.buckets()) {
    out.times_s.push_back(width * static_cast<double>(out.times_s.size()));
    out.floor.push_back(static_cast<double>(bucket.min_bytes));
    out.ceiling.push_back(static_cast<double>(bucket.max_bytes));
  }
  out.ceiling_times_s = out.times_s;
  return out;
}

bool rises_as_a_program_begins(const RecordingLevels& levels) {
  constexpr size_t kLeastRises = 12;
  constexpr double kLeastSeconds = 1;
  const std::vector<double>& floor = levels.floor;
  if (levels.are_steps || floor.empty()) return false;
  size_t rises = 0;
  for (size_t i = 1; i < floor.size(); ++i) rises += floor[i] > floor[i - 1];
  return rises < kLeastRises || levels.times_s.back() - levels.times_s[0] < kLeastSeconds;
}

}  // namespace gpumemprof

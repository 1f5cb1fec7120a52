#include "analysis/series/recording_levels.h"

#include <algorithm>
#include <utility>

#include "analysis/statistics/growth.h"
#include "analysis/statistics/statistics.h"

namespace gpumemprof {
namespace {

constexpr size_t kRisesToTell = 12;  // as in the search for leaks

}  // namespace

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

RecordingLevels levels_of_timeline(const Timeline& timeline, uint64_t last_bytes) {
  RecordingLevels out{.ceiling_start_ns = timeline.start_ns(), .are_buckets = true};
  const double width = static_cast<double>(timeline.bucket_ns()) * 1e-9;
  for (const TimelineBucket& bucket : timeline.buckets()) {
    out.times_s.push_back(width * static_cast<double>(out.times_s.size()));
    out.floor.push_back(static_cast<double>(bucket.min_bytes));
    out.ceiling.push_back(static_cast<double>(bucket.max_bytes));
  }
  out.ceiling_times_s = out.times_s;
  size_t end = timeline.buckets().size();
  while (end > 0 && timeline.buckets()[end - 1].alloc_count == 0) --end;
  if (end == 0) return out;
  out.times_s.resize(end), out.floor.resize(end);
  out.floor.back() = std::max(out.floor.back(), static_cast<double>(last_bytes));
  return out;
}

bool rises_as_a_program_begins(const RecordingLevels& levels) {
  constexpr double kLeastSeconds = 1;
  const std::vector<double>& floor = levels.floor;
  if (levels.are_steps || floor.empty()) return false;
  size_t rises = 0;
  for (size_t i = 1; i < floor.size(); ++i) rises += floor[i] > floor[i - 1];
  return rises < kRisesToTell || levels.times_s.back() - levels.times_s[0] < kLeastSeconds;
}

bool rises_to_the_end(const RecordingLevels& levels) {
  constexpr double kLeastBytes = 256 * 1024, kLeastShare = 0.15, kLargest = 0.5, kCounted = 0.01;
  if (levels.are_steps || levels.floor.empty()) return false;
  const std::vector<double> kept = never_undercut(levels.floor);
  const double whole = kept.back() - kept.front();
  const double late = kept.back() - kept[2 * (kept.size() - 1) / 3];
  size_t rises = 0;
  double largest = 0;
  for (size_t i = 1; i < kept.size(); ++i) {
    rises += kept[i] - kept[i - 1] >= kCounted * whole;
    largest = std::max(largest, kept[i] - kept[i - 1]);
  }
  return whole >= kLeastBytes && late >= kLeastShare * whole && largest <= kLargest * whole &&
         rises < kRisesToTell;
}

}  // namespace gpumemprof

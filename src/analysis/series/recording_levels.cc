#include "analysis/series/recording_patterns.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/leaks/leak_history.h"
#include "analysis/statistics/growth.h"
#include "analysis/statistics/statistics.h"

namespace gpumemprof {
namespace {

constexpr size_t kRisesToTell = 12;  // as in the search for leaks
constexpr size_t kLeastCounted = 3;  // steps, as peaks of a sawtooth
constexpr double kNearlyAll = 0.9;   // of the steps

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
  for (size_t i = 1; i < kept.size(); ++i) rises += kept[i] - kept[i - 1] >= kCounted * whole;
  return whole >= kLeastBytes && late >= kLeastShare * whole &&
         largest_jump(kept) <= kLargest * whole && rises < kRisesToTell;
}

bool steps_span_the_run(const DeviceAnalysis& device) {
  const std::vector<StepLevel>& levels = device.step_levels.levels();
  if (levels.size() < kLeastCounted) return false;
  return levels.back().end_ns - levels.front().end_ns >=
         (device.last_time_ns - device.first_time_ns) / 2;
}

double steps_before(const StepLevels& known, uint64_t time_ns) {
  const std::vector<StepLevel>& levels = known.levels();
  const auto at = std::ranges::lower_bound(levels, time_ns, {}, &StepLevel::end_ns);
  return static_cast<double>(at - levels.begin()) * static_cast<double>(known.steps_a_level());
}

Cycles cycles_within_steps(const DeviceAnalysis& device) {
  const std::vector<StepLevel>& levels = device.step_levels.levels();
  const std::vector<Turn>& turns = device.turns.all();
  if (turns.empty() || device.step_levels.steps_a_level() != 1) return {};
  std::vector<double> counts(levels.size()), rises;
  double low = INFINITY;  // the lowest valley since the last rise
  double base = 0;        // the one below that rise
  size_t step = 0;
  for (size_t i = 0; i < turns.size(); ++i) {
    while (step < levels.size() && levels[step].end_ns < turns[i].time_ns) ++step;
    if (step == levels.size()) break;
    const auto least = static_cast<double>(levels[step].least_bytes);
    const auto most = static_cast<double>(levels[step].most_bytes);
    const auto bytes = static_cast<double>(turns[i].bytes);
    if (i % 2 != 0) {
      if (bytes <= least + (most - least) / 4) low = std::min(low, bytes);
      continue;
    }
    if (low != INFINITY && bytes >= most - (most - least) / 4) {
      ++counts[step];
      rises.push_back(0);
      base = std::exchange(low, INFINITY);
    }
    if (low == INFINITY && !rises.empty()) rises.back() = std::max(rises.back(), bytes - base);
  }
  // Set-up is left out, and the step with the oldest turn: some before it may have been dropped.
  const auto oldest = static_cast<size_t>(steps_before(device.step_levels, turns[0].time_ns));
  const size_t first = std::max(levels.size() / kSetUpPart, oldest + 1);
  if (first >= counts.size()) return {};
  counts.erase(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(first));
  const double usual = median(counts);
  const auto alike = static_cast<double>(std::ranges::count(counts, usual));
  if (usual < 2 || alike < kNearlyAll * static_cast<double>(counts.size())) return {};
  std::ranges::sort(rises);
  const auto count = static_cast<size_t>(usual);
  return {.count = count, .amplitude_bytes = rises[rises.size() / (2 * count)]};
}

}  // namespace gpumemprof

// What comes and goes: spikes, cycles, and what a rise left behind.
#include <algorithm>
#include <cmath>

#include "analysis/series/series.h"
#include "analysis/statistics/statistics.h"

namespace gpumemprof {
namespace {

constexpr size_t kReach = 5;             // a spike is gone after this many samples
constexpr size_t kLeastForShape = 10;    // samples
constexpr double kLeastSpikeZ = 6;       // far outside of what noise and ramps do
constexpr size_t kStepsOfARamp = 4;      // that rise alike, one after the other
constexpr double kMostSpikes = 0.1;      // of the samples; what is more often is no exception
constexpr double kNormal = 1.4826;       // MAD to standard deviation, for a normal distribution
constexpr double kTurnShare = 0.2;       // of the range: what makes a turn
constexpr double kLeastGivenBack = 0.2;  // of the rise, else there was no cleanup
constexpr double kLeastKept = 0.25;      // of the rise
constexpr size_t kLeastCycles = 3;
constexpr double kRegular = 0.1;     // spread of periods; above it they are told as about so long
constexpr double kMostSpread = 0.4;  // above it there is no period to tell
constexpr size_t kLeastValleys = 9;   // three at each end: chance orders them so once in 64 at most
constexpr size_t kEnoughValleys = 8;  // at each end: once in 65,536

/// What one sample usually differs by from the next.
double usual_step(std::span<const double> values) {
  std::vector<double> steps;
  for (size_t i = 1; i < values.size(); ++i) steps.push_back(std::abs(values[i] - values[i - 1]));
  return median(std::move(steps));
}

/// Base and final level where memory does not go up and down often enough to have valleys.
LargestRise rise_without_cycles(const Series& series) {
  const auto values = series.values_from(series.warmup);
  const size_t tenth = std::min(values.size(), std::max<size_t>(3, values.size() / 10));
  const auto peak = std::ranges::max_element(values);
  const auto tail = values.last(tenth);
  const double base = *std::min_element(values.begin(), peak + 1);
  const auto [low, high] = std::ranges::minmax(tail);
  const bool is_settled = values.size() > 2 * tenth && peak < tail.begin() &&
                          high - low <= kTurnShare * (*peak - base);
  // What fell lower after the peak was released: the tail is another rise.
  return {base, *peak, *std::min_element(peak, values.end()), is_settled};
}

/// Base and final level where memory goes up and down. A sample meets a valley where it meets it,
/// so one valley above another is chance: each of the last lies above each of the first.
std::optional<LargestRise> rise_with_cycles(const Series& series) {
  std::vector<double> valleys;
  size_t first = 0, last = 0;
  for (const Extremum& turn : turns_of(series, series.warmup)) {
    if (!turn.is_valley) continue;
    if (valleys.empty()) first = turn.index;
    last = turn.index;
    valleys.push_back(series.bytes[turn.index]);
  }
  if (valleys.size() < kLeastValleys) return std::nullopt;
  const size_t count = std::min(valleys.size() / 3, kEnoughValleys);
  return LargestRise{std::ranges::max(std::span(valleys).first(count)),
                     std::ranges::max(std::span(series.bytes).subspan(first, last - first)),
                     std::ranges::min(std::span(valleys).last(count))};
}

/// Whether the last steps to `i` all rise, none by more than half of what they rise together.
bool is_on_a_ramp(std::span<const double> values, size_t i) {
  if (i < kStepsOfARamp) return false;
  const double rise = values[i] - values[i - kStepsOfARamp];
  for (size_t at = i - kStepsOfARamp + 1; at <= i; ++at) {
    const double step = values[at] - values[at - 1];
    if (step <= 0 || step > rise / 2) return false;
  }
  return true;
}

/// Half of it came and is gone again within reach, on both sides: an edge of the series or of a
/// step is no spike.
bool comes_and_goes(std::span<const double> values, size_t i, double above) {
  const auto before = values.subspan(i - std::min(i, kReach), std::min(i, kReach));
  const auto after = values.subspan(i + 1, std::min(values.size() - i - 1, kReach));
  const auto is_low = [&](double value) { return value <= values[i] - above / 2; };
  return std::ranges::any_of(before, is_low) && std::ranges::any_of(after, is_low);
}

}  // namespace

std::vector<Extremum> turns_of(const Series& series, size_t first) {
  const auto values = series.values_from(first);
  const auto [low, high] = std::ranges::minmax(values);
  auto turns = turning_points(values, std::max(kTurnShare * (high - low), series.least_move));
  for (Extremum& turn : turns) turn.index += first;
  return turns;
}

std::optional<Spikes> find_spikes(const Series& series) {
  if (series.end < kLeastForShape) return std::nullopt;
  const auto values = series.values_from(0);
  const std::vector<double> above = above_surroundings(values, kReach);
  const double scale = std::max(kNormal * median_absolute_deviation(above), usual_step(values));
  Spikes spikes;
  for (size_t i = 0; i < values.size(); ++i) {
    if (above[i] <= 0 || above[i] < series.least_move || above[i] <= kLeastSpikeZ * scale ||
        !comes_and_goes(values, i, above[i]) || is_on_a_ramp(values, i)) {
      continue;
    }
    if (i < series.warmup) {
      spikes.in_warmup.push_back({i, above[i]});
      continue;
    }
    spikes.samples.push_back(i);
    if (above[i] <= spikes.highest_above_bytes) continue;
    spikes.highest = i, spikes.highest_above_bytes = above[i];
    spikes.z = scale == 0 ? 0 : above[i] / scale;
  }
  if (spikes.samples.empty() ||
      static_cast<double>(spikes.samples.size()) > kMostSpikes * static_cast<double>(series.end)) {
    return std::nullopt;
  }
  return spikes;
}

std::optional<Cycles> find_cycles(const Series& series, const std::optional<Spikes>& spikes) {
  if (series.end < kLeastForShape) return std::nullopt;
  std::vector<double> periods, amplitudes;
  const Extremum* valley = nullptr;
  const Extremum* last_peak = nullptr;
  size_t peaks = 0, spike_peaks = 0;
  const std::vector<Extremum> turns = turns_of(series, 0);
  for (const Extremum& turn : turns) {
    if (turn.is_valley) {
      valley = &turn;
      continue;
    }
    ++peaks;
    spike_peaks += spikes && std::ranges::binary_search(spikes->samples, turn.index);
    if (last_peak) {
      periods.push_back(series.times_s[turn.index] - series.times_s[last_peak->index]);
    }
    if (valley) amplitudes.push_back(series.bytes[turn.index] - series.bytes[valley->index]);
    last_peak = &turn;
  }
  if (peaks < kLeastCycles || 2 * spike_peaks > peaks || amplitudes.empty()) return std::nullopt;
  const double period = median(periods);
  double off = 0;  // by the mean: of periods of two lengths the median says nothing
  for (double one : periods) off += std::abs(one - period);
  const double all = period * static_cast<double>(periods.size());
  return Cycles{peaks, period, all > 0 ? off / all : 0, median(std::move(amplitudes))};
}

std::string pace_words(double period_spread, const std::string& period) {
  if (period_spread > kMostSpread) return "at irregular intervals";
  return (period_spread > kRegular ? "about every " : "every ") + period;
}

std::optional<LargestRise> find_rise(const Series& series) {
  if (series.end < kLeastForShape) return std::nullopt;
  const LargestRise rise = rise_with_cycles(series).value_or(rise_without_cycles(series));
  return rise.bytes() < series.least_move ? std::nullopt : std::optional(rise);
}

bool is_released(const LargestRise& rise, const Series& series) {
  return rise.kept_bytes() < std::max(series.least_move, kLeastKept * rise.bytes());
}

bool is_kept(const LargestRise& rise, const Series& series) {
  return rise.is_settled && !is_released(rise, series) &&
         rise.peak_bytes - rise.final_bytes >= kLeastGivenBack * rise.bytes();
}

}  // namespace gpumemprof

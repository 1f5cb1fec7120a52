// Does memory grow for good? What counts is the floor that memory comes back to, not its peaks; and
// growth that ends, be it a warm-up or one step, is no leak.
#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/series/series_parts.h"
#include "analysis/statistics/statistics.h"

namespace gpumemprof {
namespace {

constexpr double kLeastZ = 2.326;  // one-sided p < 0.01
constexpr double kLeastShareOfThird =
    0.15;                               // of the whole growth; steady growth has a third in each
constexpr double kMostOfOneStep = 0.5;  // more in one step is a step, not a leak
constexpr size_t kMostBlocks = 64;      // Mann-Kendall and Theil-Sen look at all pairs
constexpr double kValleyShare = 0.2;    // of the range: what makes a valley

struct Floor {
  std::vector<double> times_s, bytes;
};

Floor block_minima(const Floor& all) {
  const size_t size = all.bytes.size(), blocks = std::min(size, kMostBlocks);
  Floor out;
  for (size_t b = 0; b < blocks; ++b) {
    const size_t from = b * size / blocks, to = (b + 1) * size / blocks;
    out.times_s.push_back((all.times_s[from] + all.times_s[to - 1]) / 2);
    out.bytes.push_back(*std::ranges::min_element(std::span(all.bytes).subspan(from, to - from)));
  }
  return out;
}

/// The valleys where memory goes up and down, else all samples; of many, the minima of equal
/// blocks. Of both it holds that a temporary above them leaves no trace.
Floor floor_of(const Series& series, size_t first) {
  const auto values = series.values_from(first);
  const auto times = series.times_from(first);
  const auto [low, high] = std::ranges::minmax(values);
  Floor valleys;
  for (const Extremum& turn :
       turning_points(values, std::max(kValleyShare * (high - low), series.least_move))) {
    if (!turn.is_valley) continue;
    valleys.times_s.push_back(times[turn.index]), valleys.bytes.push_back(values[turn.index]);
  }
  if (valleys.bytes.size() >= kLeastSamples) return block_minima(valleys);
  return block_minima({{times.begin(), times.end()}, {values.begin(), values.end()}});
}

/// From each moment on, memory never fell below this again. Never falls itself.
std::vector<double> retained(std::vector<double> floor) {
  for (size_t i = floor.size(); i-- > 1;) floor[i - 1] = std::min(floor[i - 1], floor[i]);
  return floor;
}

double at_share(const std::vector<double>& values, double share) {
  const double place = share * static_cast<double>(values.size() - 1);
  const size_t below = std::min(static_cast<size_t>(place), values.size() - 2);
  return values[below] + (place - static_cast<double>(below)) * (values[below + 1] - values[below]);
}

bool goes_on_to_the_end(const std::vector<double>& kept) {
  const double whole = kept.back() - kept.front();
  for (int third = 0; third < 3; ++third) {
    const double part = at_share(kept, (third + 1) / 3.0) - at_share(kept, third / 3.0);
    if (part < kLeastShareOfThird * whole) return false;
  }
  for (size_t i = 1; i < kept.size(); ++i) {
    if (kept[i] - kept[i - 1] > kMostOfOneStep * whole) return false;
  }
  return true;
}

double rising_share(std::span<const double> values) {
  double rises = 0, changes = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    rises += values[i] > values[i - 1], changes += values[i] != values[i - 1];
  }
  return changes == 0 ? 0 : rises / changes;
}

std::optional<Growth> growth_from(const Series& series, size_t first) {
  if (first + kLeastSamples > series.end) return std::nullopt;
  const Floor floor = floor_of(series, first);
  if (floor.bytes.size() < kLeastSamples) return std::nullopt;
  const std::vector<double> kept = retained(floor.bytes);
  const double bytes = kept.back() - kept.front();
  if (bytes <= 0 || bytes < series.least_move || !goes_on_to_the_end(kept)) return std::nullopt;
  const Trend trend = mann_kendall(floor.bytes);
  if (trend.z < kLeastZ) return std::nullopt;
  return Growth{.bytes = bytes,
                .bytes_per_second = theil_sen_slope(floor.times_s, floor.bytes),
                .z = trend.z,
                .tau = trend.tau,
                .start_bytes = kept.front(),
                .rising_share = rising_share(series.values_from(first)),
                .first_sample = first};
}

}  // namespace

std::optional<Growth> find_growth(const Series& series) {
  if (auto growth = growth_from(series, series.warmup)) return growth;
  // A long warm-up hides the slow growth behind it. The second half alone may be a part of a cycle,
  // so what it ends at must be more than there ever was before.
  const size_t half = series.end / 2;
  if (half <= series.warmup) return std::nullopt;
  auto growth = growth_from(series, half);
  if (!growth) return std::nullopt;
  const double before = *std::max_element(series.bytes.begin(),
                                          series.bytes.begin() + static_cast<std::ptrdiff_t>(half));
  if (growth->start_bytes + growth->bytes <= before) return std::nullopt;
  return growth;
}

}  // namespace gpumemprof

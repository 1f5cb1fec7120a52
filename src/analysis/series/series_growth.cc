// Does memory grow for good? What counts is the floor that memory comes back to, not its peaks; and
// growth that ends, be it a warm-up or one step, is no leak.
#include <algorithm>

#include "analysis/series/series.h"
#include "analysis/statistics/growth.h"
#include "analysis/statistics/statistics.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostBlocks = 64;    // Mann-Kendall and Theil-Sen look at all pairs
constexpr size_t kLastSamples = 3;    // all higher than what came before: no chance
constexpr double kLargestLate = 2.0 / 3;  // of a rise at the end; more at once is one step

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
  Floor valleys;
  for (const Extremum& turn : turns_of(series, first)) {
    if (!turn.is_valley) continue;
    valleys.times_s.push_back(series.times_s[turn.index]);
    valleys.bytes.push_back(series.bytes[turn.index]);
  }
  if (valleys.bytes.size() >= kLeastSamples) return block_minima(valleys);
  const auto values = series.values_from(first), times = series.times_from(first);
  return block_minima({{times.begin(), times.end()}, {values.begin(), values.end()}});
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
  const auto grown = growth_of_floor(floor.bytes);
  if (!grown || grown->bytes < series.least_move) return std::nullopt;
  return Growth{.bytes = grown->bytes,
                .bytes_per_second = theil_sen_slope(floor.times_s, floor.bytes),
                .z = grown->z,
                .tau = grown->tau,
                .start_bytes = std::ranges::min(floor.bytes),
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

bool still_rises(const Series& series) {
  const auto values = series.values_from(0);
  const size_t third = values.size() / 3;
  if (values.size() < kLeastSamples) return false;
  const auto before = values.first(values.size() - third);
  const auto last = values.last(std::min(kLastSamples, third));
  if (std::ranges::min(last) < std::ranges::max(before) + series.least_move) return false;
  const auto late = values.last(third + 1);
  const std::vector<double> kept = never_undercut({late.begin(), late.end()});
  return largest_jump(kept) <= kLargestLate * (kept.back() - kept.front());
}

}  // namespace gpumemprof


#include <algorithm>
#include <cmath>

#include "analysis/series/series.h"
#include "analysis/statistics/growth.h"
#include "analysis/statistics/statistics.h"

namespace gpumemprof {
namespace {

constexpr size_t kLeastPoints = 8, kMostPoints = 96;
constexpr double kMostHorizon = 100;  // a second of samples says nothing about tomorrow
constexpr double kTwoSided95 = 1.96;

struct Ceiling {
  std::vector<double> times_s, bytes;
  void add(double time_s, double level) { times_s.push_back(time_s), bytes.push_back(level); }
};

/// Where it falls after it rose. The ends are left out: nobody knows whether they are maxima.
Ceiling local_maxima(const Ceiling& all) {
  Ceiling out;
  bool rises = false;
  for (size_t i = 1; i < all.bytes.size(); ++i) {
    if (all.bytes[i] == all.bytes[i - 1]) continue;
    const bool rises_now = all.bytes[i] > all.bytes[i - 1];
    if (rises && !rises_now) {
      size_t top = i - 1;  // of equal ones the first
      while (all.bytes[top - 1] == all.bytes[top]) --top;
      out.add(all.times_s[top], all.bytes[top]);
    }
    rises = rises_now;
  }
  return out;
}

/// The highest of each of at most kMostPoints runs of equal length.
Ceiling thinned(const Ceiling& all) {
  const size_t size = all.bytes.size(), runs = std::min(size, kMostPoints);
  Ceiling out;
  for (size_t run = 0; run < runs; ++run) {
    const size_t from = run * size / runs, to = (run + 1) * size / runs;
    const std::span levels = std::span(all.bytes).subspan(from, to - from);
    const auto top = std::ranges::max_element(levels) - levels.begin() + static_cast<long>(from);
    out.add(all.times_s[static_cast<size_t>(top)], all.bytes[static_cast<size_t>(top)]);
  }
  return out;
}

/// Why the peaks do not grow, and how fast what lies below them does.
void tell_no_growth(std::span<const double> times_s, std::span<const double> bytes, double slope,
                    Forecast* out) {
  out->reason = "memory is not growing";
  if (slope <= 0) out->bytes_per_second = slope;
  if (const auto growth = find_growth(prepared(times_s, bytes, {}))) {
    out->reason = "the minimum grows, but the peaks do not, so memory does not approach the limit";
    out->bytes_per_second = growth->bytes_per_second;
  }
}

}  // namespace

Forecast forecast_limit(std::span<const double> times_s, std::span<const double> bytes,
                        std::optional<double> limit_bytes) {
  const Ceiling all{{times_s.begin(), times_s.end()}, {bytes.begin(), bytes.end()}};
  const Ceiling maxima = local_maxima(all);
  const Ceiling points = thinned(maxima.bytes.size() >= kLeastPoints ? maxima : all);
  Forecast out;
  out.points = points.bytes.size();
  if (!times_s.empty()) out.window_s = times_s.back() - times_s.front();
  if (!limit_bytes) {
    out.reason = "the limit is unknown";
  } else if (out.points < kLeastPoints || out.window_s <= 0) {
    out.reason = "fewer than " + std::to_string(kLeastPoints) + " points in time";
  }
  if (!out.reason.empty()) return out;
  if (bytes.back() >= *limit_bytes) {
    out.seconds_to_limit = out.earliest_s = out.latest_s = 0;
    return out;
  }
  const std::vector<double> slopes = pair_slopes(points.times_s, points.bytes);
  const double slope = median(slopes);
  if (!growth_of_ceiling(points.bytes) || slope <= 0) {
    tell_no_growth(times_s, bytes, slope, &out);
    return out;
  }
  out.bytes_per_second = slope;
  double above = points.bytes[0] - slope * points.times_s[0];
  for (size_t i = 1; i < out.points; ++i)
    above = std::max(above, points.bytes[i] - slope * points.times_s[i]);
  const double line_now = std::max(above + slope * times_s.back(), bytes.back());
  const double room = std::max(0.0, *limit_bytes - line_now);
  if (room / slope > kMostHorizon * out.window_s) {
    out.reason = "the limit is more than 100 times further away than the observed time";
    return out;
  }
  // Of the slopes in their order, 1.96 deviations of Mann-Kendall's S around the median (Sen 1968).
  const double half_width = kTwoSided95 * mann_kendall(points.bytes).deviation / 2;
  const auto last = static_cast<double>(slopes.size() - 1);
  const auto middle = std::floor(static_cast<double>(slopes.size()) / 2 - half_width);
  const double low = slopes[static_cast<size_t>(std::max(0.0, middle))];
  const double high = slopes[static_cast<size_t>(
      std::min(last, std::ceil(static_cast<double>(slopes.size()) / 2 + half_width)))];
  out.seconds_to_limit = room / slope;
  out.earliest_s = room / high;
  if (low > 0) out.latest_s = room / low;
  return out;
}

}  // namespace gpumemprof

#include "analysis/statistics/statistics.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace gpumemprof {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle),
                   values.end());
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  const double lower =
      *std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle));
  return lower + (upper - lower) / 2;
}

uint64_t upper_median(std::vector<uint64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double median_absolute_deviation(std::span<const double> values) {
  const double center = median({values.begin(), values.end()});
  std::vector<double> deviations;
  deviations.reserve(values.size());
  for (double value : values) deviations.push_back(std::abs(value - center));
  return median(std::move(deviations));
}

Trend mann_kendall(std::span<const double> values) {
  const double n = static_cast<double>(values.size());
  if (values.size() < 3) return {};
  double s = 0;
  std::map<double, double> ties;
  for (size_t i = 0; i < values.size(); ++i) {
    ++ties[values[i]];
    for (size_t j = i + 1; j < values.size(); ++j) {
      s += values[j] > values[i] ? 1 : values[j] < values[i] ? -1 : 0;
    }
  }
  double variance = n * (n - 1) * (2 * n + 5);
  for (const auto& [value, count] : ties) variance -= count * (count - 1) * (2 * count + 5);
  variance /= 18;
  const double tau = s / (n * (n - 1) / 2);
  const double deviation = std::sqrt(std::max(variance, 0.0));
  if (variance <= 0 || s == 0) return {.z = 0, .tau = tau, .deviation = deviation};
  return {.z = (s - (s > 0 ? 1 : -1)) / deviation, .tau = tau, .deviation = deviation};
}

std::vector<double> pair_slopes(std::span<const double> times, std::span<const double> values) {
  std::vector<double> slopes;
  for (size_t i = 0; i < values.size(); ++i) {
    for (size_t j = i + 1; j < values.size(); ++j) {
      const double step = times[j] - times[i];
      if (step > 0) slopes.push_back((values[j] - values[i]) / step);
    }
  }
  std::ranges::sort(slopes);
  return slopes;
}

double theil_sen_slope(std::span<const double> times, std::span<const double> values) {
  return median(pair_slopes(times, values));
}

std::vector<double> above_surroundings(std::span<const double> values, size_t reach) {
  std::vector<double> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    // At the ends the window is moved, not cut: half a window would follow a slope to one side.
    const size_t width = std::min(values.size(), 2 * reach + 1);
    const size_t from = std::min(i > reach ? i - reach : 0, values.size() - width);
    const auto window = values.subspan(from, width);
    out[i] = values[i] - median({window.begin(), window.end()});
  }
  return out;
}

std::vector<Extremum> turning_points(std::span<const double> values, double least_move) {
  std::vector<Extremum> out;
  if (values.empty()) return out;
  size_t lowest = 0, highest = 0;
  int direction = 0;  // of the movement that goes on: +1 up, -1 down, 0 not known yet
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] < values[lowest]) lowest = i;
    if (values[i] > values[highest]) highest = i;
    if (direction >= 0 && values[highest] - values[i] >= least_move) {
      if (direction > 0) out.push_back({highest, false});
      direction = -1, lowest = i;
    } else if (direction <= 0 && values[i] - values[lowest] >= least_move) {
      if (direction < 0) out.push_back({lowest, true});
      direction = 1, highest = i;
    }
    // While a direction goes on, only its own extreme counts.
    if (direction > 0) lowest = highest;
    if (direction < 0) highest = lowest;
  }
  return out;
}

}  // namespace gpumemprof

// The statistics that the questions to a series are answered with. Robust ones: one odd sample must
// not make or hide a finding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gpumemprof {

/// 0 of nothing. Of an even number the mean of the two in the middle.
double median(std::vector<double> values);

/// Of an even number the upper of the two in the middle; not of nothing.
uint64_t upper_median(std::vector<uint64_t> values);

/// Median absolute deviation from the median; 0 of nothing.
double median_absolute_deviation(std::span<const double> values);

/// Mann (1945), Kendall (1975), with the correction of the variance for ties.
struct Trend {
  double z = 0;  ///< standard score of S, with continuity correction; 0 where there is no variance
  double tau = 0;  ///< (concordant - discordant) / pairs, -1 to 1
  double deviation = 0;  ///< of S, where there is no trend
};
/// O(n^2): give it at most a few hundred values.
Trend mann_kendall(std::span<const double> values);

/// Of all pairs of which the times differ, in ascending order. O(n^2 log n).
std::vector<double> pair_slopes(std::span<const double> times, std::span<const double> values);

/// The median of the slopes of all pairs (Theil 1950, Sen 1968); 0 where no two times differ.
/// O(n^2).
double theil_sen_slope(std::span<const double> times, std::span<const double> values);

/// v[i] - median of the `2 * reach + 1` values around it. Follows steps, so that only what comes
/// and goes within `reach` values stands out.
std::vector<double> above_surroundings(std::span<const double> values, size_t reach);

struct Extremum {
  size_t index;
  bool is_valley;
};
/// Turning points between which the values move by at least `least_move`, alternating. The ends of
/// the series are no turning points.
std::vector<Extremum> turning_points(std::span<const double> values, double least_move);

/// Of these, those that are not marked stay, in their order.
template <class T>
void erase_marked(const std::vector<bool>& marks, std::vector<T>* values) {
  size_t next = 0;
  std::erase_if(*values, [&](const T&) { return marks[next++]; });
}

}  // namespace gpumemprof

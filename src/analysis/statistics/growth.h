// Does memory grow for good, or did it fill and stop? The one answer that is given of lines of code
// (leaks/), of samples (series/), of what is watched now (picture/) and by Python's forecast.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gpumemprof {

/// From each level the least of all that follow: what is never given back. Never falls itself.
std::vector<double> never_undercut(std::vector<double> levels);

/// Of what never falls: each third of it has its part of the growth, so that it goes on to the end.
bool rises_in_each_third(std::span<const double> kept);
/// How often it rises.
uint64_t count_rises(std::span<const double> kept);
/// By how much at once, at most.
double largest_jump(std::span<const double> kept);

struct LevelGrowth {
  double bytes = 0;     ///< of what is never given back, from the first level to the last
  double z = 0;         ///< Mann-Kendall's, with the correction for ties
  double tau = 0;       ///< -1 to 1
  uint64_t rises = 0;   ///< of what is never given back
};

/// A program that starts up grows: loaded libraries, its data, its first step. Seen from outside, with no
/// word of what the memory is, less time than this tells nothing about growth.
inline constexpr double kLeastSecondsFromOutside = 12;

/// Fewer levels than this tell nothing about growth.
inline constexpr size_t kLeastLevels = 6;

/// `floor`: the least that was live in one window after the other; at most a few hundred, O(n^2).
/// Nothing where it stays, fills and stops, comes and goes, rises in one jump, or where there are
/// too few levels to tell. Thresholds: docs/scores.md.
std::optional<LevelGrowth> growth_of_floor(std::span<const double> floor);

/// The same of the highest that was live in each window: what is never exceeded before.
std::optional<LevelGrowth> growth_of_ceiling(std::span<const double> ceiling);

}  // namespace gpumemprof

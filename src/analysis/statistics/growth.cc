#include "analysis/statistics/growth.h"

#include <algorithm>

#include "analysis/statistics/statistics.h"

namespace gpumemprof {
namespace {

/// One-sided, 1 in 1,000: a program has some hundred stacks, and is asked about again and again.
constexpr double kLeastZ = 3.09;
/// With few levels no z is as high: then they must rise without exception.
constexpr size_t kFewLevels = 10;
/// Of the whole growth; steady growth has a third in each.
constexpr double kLeastShareOfThird = 0.15;
/// More at once is a state that is made late, or a table that is enlarged.
constexpr double kLargestJump = 0.5;

double level_at(std::span<const double> kept, double share) {
  const double place = share * static_cast<double>(kept.size() - 1);
  const size_t below = std::min(static_cast<size_t>(place), kept.size() - 2);
  return kept[below] + (place - static_cast<double>(below)) * (kept[below + 1] - kept[below]);
}

}  // namespace

std::vector<double> never_undercut(std::vector<double> levels) {
  for (size_t i = levels.size(); i-- > 1;) levels[i - 1] = std::min(levels[i - 1], levels[i]);
  return levels;
}

bool rises_in_each_third(std::span<const double> kept) {
  const double whole = kept.back() - kept.front();
  for (int third = 0; third < 3; ++third) {
    const double part = level_at(kept, (third + 1) / 3.0) - level_at(kept, third / 3.0);
    if (!(whole > 0) || part < kLeastShareOfThird * whole) return false;
  }
  return true;
}

uint64_t count_rises(std::span<const double> kept) {
  uint64_t rises = 0;
  for (size_t i = 1; i < kept.size(); ++i) rises += kept[i] > kept[i - 1];
  return rises;
}

double largest_jump(std::span<const double> kept) {
  double largest = 0;
  for (size_t i = 1; i < kept.size(); ++i) largest = std::max(largest, kept[i] - kept[i - 1]);
  return largest;
}

std::optional<LevelGrowth> growth_of_floor(std::span<const double> floor) {
  if (floor.size() < kLeastLevels) return std::nullopt;
  const std::vector<double> kept = never_undercut({floor.begin(), floor.end()});
  if (!rises_in_each_third(kept)) return std::nullopt;
  LevelGrowth growth{.bytes = kept.back() - kept.front(), .rises = count_rises(kept)};
  if (largest_jump(kept) > kLargestJump * growth.bytes) return std::nullopt;
  const Trend trend = mann_kendall(floor);
  growth.z = trend.z, growth.tau = trend.tau;
  const bool is_sure = floor.size() < kFewLevels ? growth.rises + 1 == floor.size()
                                                 : growth.z >= kLeastZ;
  return is_sure ? std::optional(growth) : std::nullopt;
}

std::optional<LevelGrowth> growth_of_ceiling(std::span<const double> ceiling) {
  // Upside down and from the end, a ceiling is a floor.
  std::vector<double> floor(ceiling.rbegin(), ceiling.rend());
  for (double& level : floor) level = -level;
  return growth_of_floor(floor);
}

}  // namespace gpumemprof

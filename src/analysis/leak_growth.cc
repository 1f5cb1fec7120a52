#include "analysis/leak_growth.h"

#include <algorithm>
#include <vector>

#include "analysis/series_statistics.h"

namespace gpumemprof {
namespace {

/// A point is the floor of at least two whole steps, so that what lives for a step is no part of
/// it; more than so many points tell nothing more and cost a square.
constexpr uint64_t kStepsAPoint = 2, kMostPoints = 64;
/// Buffers, caches and lazily made state fill in the first part of a run.
constexpr double kWarmUp = 0.25;
constexpr size_t kLeastPoints = 6;
/// One-sided, 1 in 1,000: there are some hundred stacks.
constexpr double kLeastZ = 3.09;
/// With few points no z is as high: then they must rise without exception.
constexpr size_t kFewPoints = 10;
/// What goes up in a few jumps is a state that is made late, or a table that is enlarged.
constexpr double kLargestJump = 0.5;
constexpr uint64_t kLeastRises = 4;
/// A stack that keeps one block of many hundred, now and then, waits for Python's collector.
constexpr double kLeastKept = 0.01, kKeptAStep = 0.5;

struct Points {
  std::vector<double> steps, floors;
};

Points points_of(const SiteHistory& site, const Period& period) {
  Points out;
  const uint64_t width = std::max(kStepsAPoint, period.steps() / kMostPoints);
  size_t next = 0;
  uint64_t held = 0, floor = UINT64_MAX, begun_at = 0;
  for (uint32_t window = 0; window <= period.last_window; ++window) {
    uint64_t floor_here = held;
    if (next < site.cells.size() && site.cells[next].window == window) {
      floor_here = site.cells[next].floor_bytes;
      held = site.cells[next++].last_bytes;
    }
    if (window < period.first_window) continue;
    floor = std::min(floor, floor_here);
    if (period.done[window] - begun_at < width) continue;
    out.steps.push_back(static_cast<double>(period.done[window]));
    out.floors.push_back(static_cast<double>(floor));
    begun_at = period.done[window];
    floor = UINT64_MAX;
  }
  return out;
}

void drop_warm_up(Points* points, double until) {
  size_t from = 0;
  while (from < points->steps.size() && points->steps[from] <= until) ++from;
  points->steps.erase(points->steps.begin(), points->steps.begin() + static_cast<ptrdiff_t>(from));
  points->floors.erase(points->floors.begin(),
                       points->floors.begin() + static_cast<ptrdiff_t>(from));
}

/// From each point the least of all that follow: what is never given back.
std::vector<double> never_undercut(std::vector<double> floors) {
  for (size_t i = floors.size() - 1; i-- > 0;) floors[i] = std::min(floors[i], floors[i + 1]);
  return floors;
}

bool rises_in_each_third(const std::vector<double>& kept) {
  const size_t last = kept.size() - 1;
  return kept[last / 3] > kept[0] && kept[2 * last / 3] > kept[last / 3] &&
         kept[last] > kept[2 * last / 3];
}

/// How many blocks the growth is. Of the size of those that stay: a loss of four bytes and what it
/// was made from are often of one stack.
double kept_blocks(const SiteHistory& site, const LeakGrowth& growth) {
  const double mean_bytes =
      static_cast<double>(site.alloc_bytes) / static_cast<double>(site.alloc_count);
  const double block_bytes =
      site.median_live_bytes != 0 ? static_cast<double>(site.median_live_bytes) : mean_bytes;
  return static_cast<double>(growth.grown_bytes) / block_bytes;
}

bool waits_for_collector(const SiteHistory& site, const LeakGrowth& growth, uint64_t all_steps) {
  if (site.alloc_count == 0) return false;
  const double kept = kept_blocks(site, growth);
  const double allocs = static_cast<double>(site.alloc_count) * static_cast<double>(growth.steps) /
                        static_cast<double>(all_steps);
  return kept < kLeastKept * allocs && kept < kKeptAStep * static_cast<double>(growth.steps) &&
         site.live_count > 1;
}

}  // namespace

std::optional<LeakGrowth> growth_of(const SiteHistory& site, const Period& period) {
  if (period.from == Period::From::kNothing) return std::nullopt;
  if (site.live_bytes == 0 && site.cells.empty()) return std::nullopt;
  Points points = points_of(site, period);
  LeakGrowth growth;
  growth.warm_up_steps = static_cast<uint64_t>(kWarmUp * static_cast<double>(period.steps()));
  drop_warm_up(&points, static_cast<double>(growth.warm_up_steps));
  growth.points = points.floors.size();
  if (growth.points < kLeastPoints) return std::nullopt;
  growth.warm_up_steps = static_cast<uint64_t>(points.steps.front());  // whole points are left out
  growth.steps_after_warm_up = period.steps() - growth.warm_up_steps;
  const std::vector<double> kept = never_undercut(points.floors);
  if (!(kept.back() > kept.front()) || !rises_in_each_third(kept)) return std::nullopt;
  const double grown = kept.back() - kept.front();
  for (size_t i = 1; i < kept.size(); ++i) {
    growth.rises += kept[i] > kept[i - 1];
    if (kept[i] - kept[i - 1] > kLargestJump * grown) return std::nullopt;
  }
  growth.grown_bytes = static_cast<uint64_t>(grown);
  growth.steps = static_cast<uint64_t>(points.steps.back() - points.steps.front());
  growth.z = mann_kendall(points.floors).z;
  const bool always = growth.rises + 1 == growth.points;
  if (growth.rises < kLeastRises) return std::nullopt;
  if (growth.points < kFewPoints ? !always : growth.z < kLeastZ) return std::nullopt;
  if (waits_for_collector(site, growth, period.steps())) return std::nullopt;
  growth.bytes_a_step = theil_sen_slope(points.steps, points.floors);
  if (growth.bytes_a_step <= 0) growth.bytes_a_step = grown / static_cast<double>(growth.steps);
  return growth;
}

}  // namespace gpumemprof

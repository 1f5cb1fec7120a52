#include "analysis/leaks/leak_growth.h"

#include <algorithm>
#include <limits>

#include "analysis/statistics/growth.h"

namespace gpumemprof {
namespace {

/// A point is the floor of at least two whole steps, so that what lives for a step is no part of
/// it, but of one where there are few; more than so many points tell nothing more and cost a
/// square.
constexpr uint64_t kStepsAPoint = 2, kMostPoints = 64, kFewSteps = 32;
/// Buffers, caches and lazily made state fill in the first part of a run.
constexpr double kWarmUp = 0.25;
/// What begins later must go on for as large a part of the run.
constexpr double kLeastPart = 0.25;
/// Growth in a few jumps is state allocated late, or a table that is enlarged. A jump of many
/// consecutive allocations is a burst; three bursts are enough.
constexpr uint64_t kLeastRises = 4, kLeastBursts = 3, kRisesOfBurst = 3;
/// Share of the floor's rises that is never given back.
constexpr double kKeptOfRises = 0.5;
/// A stack that keeps one block of many hundred, now and then, waits for Python's collector. A
/// block that is replaced by a larger one exists twice during the copy.
constexpr double kLeastKept = 0.01, kKeptAStep = 0.5;
constexpr uint64_t kBlocksOfCopy = 3;
/// Rises this many times further apart than the closest ones belong to another phase.
constexpr double kPhaseApart = 2.5;
/// Where the last third grew so many times less than the first, no line leads to the limit.
constexpr double kSlower = 2.5;

struct Points {
  std::vector<double> steps, floors;
  size_t size() const { return steps.size(); }
  void drop_first(size_t count) {
    steps.erase(steps.begin(), steps.begin() + static_cast<ptrdiff_t>(count));
    floors.erase(floors.begin(), floors.begin() + static_cast<ptrdiff_t>(count));
  }
};

/// One point for each `width` steps. What comes after the last of them, a validation at the end of
/// the last epoch, is as one step more.
Points points_of(const std::vector<double>& floors, const Period& period, uint64_t width) {
  Points out;
  uint64_t begun_at = 0;
  double floor = floors[period.first_window];
  for (uint32_t window = period.first_window; window <= period.last_window; ++window) {
    floor = std::min(floor, floors[window]);
    if (period.done[window] - begun_at < width) continue;
    out.steps.push_back(static_cast<double>(period.done[window]));
    out.floors.push_back(floor);
    begun_at = period.done[window];
    if (window != period.last_window) floor = floors[window + 1];
  }
  if (period.last_window + 1 < floors.size()) {
    out.steps.push_back(static_cast<double>(period.steps() + 1));
    out.floors.push_back(floors.back());
  }
  return out;
}

/// Without the steps until `until`, and of the rest from the last point before the first rise on.
/// Nothing where it had been as high before that: then the rise is work that is not done, as the
/// items of a worker's batch are when its process ends.
Points growing_part(Points points, double until, bool* begins_late) {
  size_t from = 0;
  while (from < points.size() && points.steps[from] <= until) ++from;
  points.drop_first(from);
  *begins_late = false;
  if (points.size() < 2) return points;
  double rest = points.floors.back();
  size_t first_rise = points.size();
  for (size_t i = points.size() - 1; i-- > 0;) {
    if (std::min(rest, points.floors[i]) < rest) first_rise = i;
    rest = std::min(rest, points.floors[i]);
  }
  if (first_rise == points.size()) return points;
  *begins_late = first_rise != 0;
  double before = 0;
  for (size_t i = 0; i < first_rise; ++i) before = std::max(before, points.floors[i]);
  points.drop_first(first_rise);
  const std::vector<double> kept = never_undercut(points.floors);
  if (before > kept.front() && kept.back() <= before + largest_jump(kept)) return {};
  return points;
}

/// What the floor goes up in all, with what it comes back from.
double all_rises(const std::vector<double>& floors) {
  double sum = 0;
  for (size_t i = 1; i < floors.size(); ++i) sum += std::max(0.0, floors[i] - floors[i - 1]);
  return sum;
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
         site.live_count > kBlocksOfCopy;
}

/// Where the floor has risen: `before` and `after` it, at these steps.
struct Rise {
  double step = 0, before = 0, after = 0;
};

/// Rises after the warm-up, with the steps that had ended before each; those within one step are
/// one.
std::vector<Rise> all_rises_of(const std::vector<double>& floors, const Period& period,
                               double warm_up) {
  const std::vector<double> kept = never_undercut(floors);
  std::vector<Rise> out;
  for (uint32_t window = period.first_window + 1; window < kept.size(); ++window) {
    const auto step = static_cast<double>(period.done[window - 1]);
    if (!(kept[window] > kept[window - 1]) || step < warm_up) continue;
    if (!out.empty() && out.back().step == step) {
      out.back().after = kept[window];
    } else {
      out.push_back({step, kept[window - 1], kept[window]});
    }
  }
  return out;
}

bool is_at_end(const Rise& rise, const Period& period) {
  return rise.step + 1 >= static_cast<double>(period.steps());
}

/// What a stack holds at the end of the process alone looks like a rise, too: the last step is left
/// out where there are others.
std::vector<Rise> rises_of(const std::vector<double>& floors, const Period& period,
                           double warm_up) {
  std::vector<Rise> out = all_rises_of(floors, period, warm_up);
  while (out.size() > 2 && is_at_end(out.back(), period)) out.pop_back();
  return out;
}

/// The steps of the longest window: a copy may begin in one and end in the next.
double steps_of_window(const Period& period) {
  uint64_t most = 1;
  for (uint32_t window = period.first_window + 1; window <= period.last_window; ++window)
    most = std::max(most, period.done[window] - period.done[window - 1]);
  return static_cast<double>(most);
}

void add_times(const std::vector<double>& floors, const Period& period, LeakGrowth* growth) {
  std::vector<Rise> times;
  const double apart = steps_of_window(period);
  for (const Rise& rise : all_rises_of(floors, period, 0)) {
    if (!times.empty() && rise.step - times.back().step <= apart) {
      times.back().after = rise.after;
    } else {
      times.push_back(rise);
    }
  }
  const auto bytes = [](const Rise& rise) { return rise.after - rise.before; };
  double last_bytes = 0;
  while (times.size() > 2 && is_at_end(times.back(), period)) {
    last_bytes += bytes(times.back());
    times.pop_back();
  }
  double others_bytes = 0;
  for (const Rise& time : times) {
    growth->time_steps.push_back(static_cast<uint64_t>(time.step));
    others_bytes += bytes(time);
  }
  growth->comes_at_end = 2 * last_bytes * static_cast<double>(times.size()) >= others_bytes &&
                         last_bytes > 0;
}

/// How often the floor went up between two rises that stay: by blocks that were released later.
uint64_t undone_rises(const Points& points, const Rise& from, const Rise& to) {
  uint64_t rises = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    const bool is_between = points.steps[i - 1] >= from.step + 2 && points.steps[i] <= to.step + 1;
    rises += is_between && points.floors[i] > points.floors[i - 1];
  }
  return rises;
}

/// The first rise of each phase in which it grows: of a burst, or of steps that grow one after the
/// other. A pause ends a phase, and is none where it grew and gave that back.
std::vector<Rise> phases_of(const std::vector<Rise>& rises, const Points& points) {
  double least = std::numeric_limits<double>::max();
  for (size_t i = 1; i < rises.size(); ++i) {
    least = std::min(least, rises[i].step - rises[i - 1].step);
  }
  std::vector<Rise> out = {rises.front()};
  for (size_t i = 1; i < rises.size(); ++i) {
    if (rises[i].step - rises[i - 1].step <= kPhaseApart * least) continue;
    if (undone_rises(points, rises[i - 1], rises[i]) <= 1) out.push_back(rises[i]);
  }
  return out;
}

/// From the beginning of a phase to that of the last, or where there is one alone, from the end of
/// its first rise to that of its last: so growth is counted with the steps that it stands for. Of a
/// phase that the warm-up has cut the beginning is not known.
void measure(const std::vector<Rise>& rises, const Points& points, bool begins_late,
             LeakGrowth* growth) {
  for (const Rise& rise : rises) growth->rise_steps.push_back(static_cast<uint64_t>(rise.step));
  std::vector<Rise> phases = phases_of(rises, points);
  if (phases.size() > 2 && !begins_late) phases.erase(phases.begin());
  double bytes = rises.back().after - rises.front().after;
  double steps = rises.back().step - rises.front().step;
  if (phases.size() > 1) {
    bytes = phases.back().before - phases.front().before;
    steps = phases.back().step - phases.front().step;
  }
  growth->grown_bytes = static_cast<uint64_t>(bytes);
  growth->steps = static_cast<uint64_t>(steps);
  growth->bytes_a_step = bytes / steps;
}

double warm_up(const Period& period) { return kWarmUp * static_cast<double>(period.steps()); }

bool slows_down(const std::vector<double>& kept) {
  const size_t third = kept.size() / 3;
  if (third == 0) return false;
  const double first = kept[third] - kept.front();
  const double last = kept.back() - kept[kept.size() - 1 - third];
  return kSlower * last <= first;
}

/// The figures; nothing where the growing part does not rise in each of its thirds.
std::optional<LeakGrowth> figures(const std::vector<double>& floors, const Period& period) {
  bool begins_late = false;
  const Points points = growing_part(points_of(floors, period, 1), warm_up(period), &begins_late);
  if (points.size() < 2) return std::nullopt;
  std::vector<double> kept = never_undercut(points.floors);
  if (!rises_in_each_third(kept)) {
    // The last step's window may hold what the step frees after its last allocation.
    if (kept.size() <= kLeastLevels) return std::nullopt;
    kept.pop_back();
    if (!rises_in_each_third(kept)) return std::nullopt;
  }
  LeakGrowth growth{.warm_up_steps = static_cast<uint64_t>(points.steps.front())};
  growth.slows = slows_down(kept);
  const std::vector<Rise> rises = rises_of(floors, period, warm_up(period));
  if (rises.size() < 2) return std::nullopt;
  measure(rises, points, begins_late, &growth);
  add_times(floors, period, &growth);
  return growth;
}

bool comes_in_bursts(const std::vector<double>& floors, const Period& period, uint64_t rises) {
  if (period.from != Period::From::kMarks || rises < kLeastBursts) return false;
  uint32_t window = period.first_window;
  while (static_cast<double>(period.done[window]) <= warm_up(period)) ++window;
  const std::vector<double> since(floors.begin() + window, floors.end());
  return count_rises(never_undercut(since)) >= kRisesOfBurst * rises;
}

bool is_growth(const std::vector<double>& floors, const Period& period, LeakGrowth* growth) {
  const uint64_t steps = period.steps();
  const uint64_t width = steps < kFewSteps ? 1 : std::max(kStepsAPoint, steps / kMostPoints);
  bool begins_late = false;
  const Points points =
      growing_part(points_of(floors, period, width), warm_up(period), &begins_late);
  growth->points = points.size();
  const auto grown = growth_of_floor(points.floors);
  if (!grown) return false;
  growth->rises = grown->rises, growth->z = grown->z;
  if (points.steps.back() - points.steps.front() < kLeastPart * static_cast<double>(steps)) {
    return false;
  }
  if (begins_late && grown->bytes < kKeptOfRises * all_rises(points.floors)) return false;
  return growth->rises >= kLeastRises || comes_in_bursts(floors, period, growth->rises);
}

std::optional<LeakGrowth> judged(const std::vector<double>& floors, const Period& period) {
  auto growth = figures(floors, period);
  if (!growth || !is_growth(floors, period, &*growth)) return std::nullopt;
  return growth;
}

}  // namespace

std::vector<double> floors_by_window(Sites sites, const Period& period) {
  std::vector<double> out(period.done.size());
  for (const SiteHistory* site : sites) {
    size_t next = 0;
    uint64_t held = 0;
    for (uint32_t window = 0; window < out.size(); ++window) {
      uint64_t floor = held;
      if (next < site->cells.size() && site->cells[next].window == window) {
        floor = site->cells[next].floor_bytes;
        held = site->cells[next++].last_bytes;
      }
      out[window] += static_cast<double>(floor);
    }
  }
  return out;
}

std::optional<LeakGrowth> growth_of(Sites sites, const Period& period) {
  if (period.from == Period::From::kNothing || period.steps() == 0) return std::nullopt;
  std::vector<double> floors = floors_by_window(sites, period);
  auto growth = judged(floors, period);
  // A program may drop all of it when its steps are over.
  if (!growth && period.last_window + 1 < floors.size()) {
    floors.resize(period.last_window + 1);
    growth = judged(floors, period);
  }
  return growth;
}

std::optional<LeakGrowth> growth_of(const SiteHistory& site, const Period& period) {
  const SiteHistory* one = &site;
  auto growth = growth_of(Sites(&one, 1), period);
  if (growth && waits_for_collector(site, *growth, period.steps())) return std::nullopt;
  return growth;
}

std::optional<LeakGrowth> growth_along(const SiteHistory& site, const Period& period) {
  const SiteHistory* one = &site;
  const auto growth = figures(floors_by_window(Sites(&one, 1), period), period);
  if (!growth || waits_for_collector(site, *growth, period.steps())) return std::nullopt;
  return growth;
}

}  // namespace gpumemprof

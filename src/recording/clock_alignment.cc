#include "recording/clock_alignment.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace gpumemprof {
namespace {

constexpr int64_t kMostNs = int64_t{1} << 61;
/// Clocks that are set by the same servers drift apart by less while a job runs. Where bounds
/// contradict each other by more, they are not of the same collectives.
constexpr int64_t kMostDriftNs = 50'000'000;

/// How far clock b is ahead of clock a.
struct Distance {
  int64_t ahead_ns = 0;
  uint64_t error_ns = 0;
  uint64_t collectives = 0;
  bool drifts = false;
};
struct Bounds {
  int64_t least, most;
  int64_t middle() const { return least + (most - least) / 2; }
  int64_t half() const { return (most - least + 1) / 2; }
};

/// Of those bounds that say the most, the farthest from `middle`.
uint64_t error_about(int64_t middle, const std::vector<Bounds>& all) {
  int64_t best = INT64_MAX, error = 0;
  for (const Bounds& one : all) best = std::min(best, one.half());
  for (const Bounds& one : all) {
    if (one.half() > 2 * best) continue;
    error = std::max(error, std::abs(one.middle() - middle) + one.half());
  }
  return static_cast<uint64_t>(error);
}

std::optional<Distance> distance_by(const std::vector<Bounds>& all) {
  Bounds within = all.front();
  for (const Bounds& one : all) {
    within.least = std::max(within.least, one.least), within.most = std::min(within.most, one.most);
  }
  if (within.least - within.most > kMostDriftNs) return std::nullopt;
  Distance out{.ahead_ns = within.middle(), .collectives = all.size()};
  out.drifts = within.least > within.most;
  out.error_ns = out.drifts ? error_about(out.ahead_ns, all) : static_cast<uint64_t>(within.half());
  return out;
}

/// The bits of Mark::collective() that number the group.
uint64_t group_of(uint64_t collective) { return collective & 15; }

bool is_known(const CollectiveTimes& times) {
  return times.last_begin_ns != 0 && times.last_begin_ns < kMostNs && times.first_end_ns < kMostNs;
}
int64_t difference(uint64_t to, uint64_t from) {
  return static_cast<int64_t>(to) - static_cast<int64_t>(from);
}

std::optional<Distance> distance_between(const ClockSamples& a, const ClockSamples& b) {
  std::map<uint64_t, std::vector<Bounds>> by_group;
  for (const auto& [collective, of_a] : a.collectives) {
    const auto found = b.collectives.find(collective);
    if (found == b.collectives.end() || !is_known(of_a) || !is_known(found->second)) continue;
    const CollectiveTimes& of_b = found->second;
    const Bounds bounds{difference(of_b.last_begin_ns, of_a.first_end_ns),
                        difference(of_b.first_end_ns, of_a.last_begin_ns)};
    if (bounds.least <= bounds.most) by_group[group_of(collective)].push_back(bounds);
  }
  // Groups that were made in another order on the other rank would mislead, one collective of them
  // more than many of the right ones.
  std::optional<Distance> best;
  for (const auto& [group, all] : by_group) {
    const auto one = distance_by(all);
    if (one && (!best || one->collectives > best->collectives)) best = one;
  }
  return best;
}

int64_t wall_shift(const ClockSamples& clock, const ClockSamples& base) {
  const auto shift = static_cast<int64_t>(static_cast<uint64_t>(clock.wall_offset_ns) -
                                          static_cast<uint64_t>(base.wall_offset_ns));
  return shift > kMostNs || shift < -kMostNs ? 0 : shift;
}

}  // namespace

void ClockSamples::take(const Mark& mark) {
  CollectiveTimes& times = collectives[mark.collective()];
  if (mark.begins_collective()) {
    times.last_begin_ns = std::max(times.last_begin_ns, mark.time_ns);
  } else {
    times.first_end_ns = std::min(times.first_end_ns, mark.time_ns);
  }
}

std::vector<MachineClock> align_clocks(std::span<const ClockSamples> clocks) {
  std::vector<MachineClock> out(clocks.size());
  if (clocks.empty()) return out;
  const auto base = static_cast<size_t>(
      std::ranges::min_element(clocks, {}, &ClockSamples::wall_offset_ns) - clocks.begin());
  std::vector<size_t> left, placed{base};
  for (size_t i = 0; i < clocks.size(); ++i) {
    if (i != base) left.push_back(i);
  }
  for (size_t i = 0; i < placed.size(); ++i) {
    const MachineClock& from = out[placed[i]];
    std::erase_if(left, [&](size_t to) {
      const auto apart = distance_between(clocks[placed[i]], clocks[to]);
      if (!apart) return false;
      out[to] = {.by = MachineClock::Aligned::kCollectives,
                 .shift_ns = from.shift_ns - apart->ahead_ns,
                 .error_ns = from.error_ns ? std::optional(*from.error_ns + apart->error_ns)
                                           : std::nullopt,
                 .collectives = apart->collectives,
                 .drifts = from.drifts || apart->drifts};
      placed.push_back(to);
      return true;
    });
    if (i + 1 < placed.size() || left.empty()) continue;
    out[left.front()] = {.by = MachineClock::Aligned::kWallClock,
                         .shift_ns = wall_shift(clocks[left.front()], clocks[base]),
                         .error_ns = std::nullopt};
    placed.push_back(left.front());
    left.erase(left.begin());
  }
  int64_t least = 0;
  for (const MachineClock& one : out) least = std::min(least, one.shift_ns);
  for (MachineClock& one : out) one.shift_ns -= least;
  return out;
}

}  // namespace gpumemprof

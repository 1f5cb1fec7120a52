#include "analysis/leak_period.h"

#include <algorithm>
#include <map>

namespace gpumemprof {
namespace {

void accumulate(const std::vector<uint32_t>& by_window, Period* period) {
  uint64_t done = 0;
  bool any = false;
  for (uint32_t window = 0; window < by_window.size(); ++window) {
    done += by_window[window];
    period->done.push_back(done);
    if (by_window[window] == 0) continue;
    if (!any) period->first_window = window;
    any = true;
    period->last_window = window;
  }
}

/// What fewer stacks have in common, one in so many, is no step but chance.
constexpr uint64_t kShareOfStep = 8;

/// Loops begin and end in the middle, so counts that differ by one are of one loop.
uint64_t commonest_count(const ProcessHistory& history) {
  std::map<uint64_t, uint64_t> stacks;
  for (const SiteHistory& site : history.sites) {
    if (site.alloc_count >= kLeastSteps) ++stacks[site.alloc_count];
  }
  const auto at = [&](uint64_t count) {
    const auto known = stacks.find(count);
    return known == stacks.end() ? 0 : known->second;
  };
  uint64_t best = 0, most = 0;
  for (const auto& [count, number] : stacks) {
    const uint64_t near = 2 * number + at(count - 1) + at(count + 1);
    if (near >= most) best = count, most = near;
  }
  // A stack that allocates for each parameter or layer does so several times a step: where the
  // step itself is to be seen, its count is a divisor.
  for (const auto& [count, number] : stacks) {
    const bool divides = count < best && best % count == 0;
    if (divides && kShareOfStep * number >= most) return count;
  }
  return best;
}

/// The largest part of the windows between first and last in which the stack did nothing: the less,
/// the better it keeps time.
uint64_t longest_gap(const SiteHistory& site) {
  uint64_t longest = 0;
  const HeldCell* before = nullptr;
  for (const HeldCell& cell : site.cells) {
    if (cell.allocs == 0) continue;
    if (before) longest = std::max<uint64_t>(longest, cell.window - before->window);
    before = &cell;
  }
  return longest;
}

}  // namespace

Period find_period(const ProcessHistory& history) {
  Period period;
  uint64_t marked = 0;
  for (uint32_t steps : history.steps) marked += steps;
  if (marked >= kLeastSteps) {
    period.from = Period::From::kMarks;
    accumulate(history.steps, &period);
    return period;
  }
  const uint64_t count = commonest_count(history);
  if (count == 0) {
    period.why_none = "nothing happens " + std::to_string(kLeastSteps) + " times or more";
    return period;
  }
  const SiteHistory* metronome = nullptr;
  for (const SiteHistory& site : history.sites) {
    if (site.alloc_count != count) continue;
    if (!metronome || longest_gap(site) < longest_gap(*metronome)) metronome = &site;
  }
  period.from = Period::From::kCallSite;
  period.stack = metronome->stack;
  std::vector<uint32_t> by_window(history.windows());
  for (const HeldCell& cell : metronome->cells) by_window[cell.window] = cell.allocs;
  accumulate(by_window, &period);
  return period;
}

}  // namespace gpumemprof

#include "recording/intervals.h"

#include <algorithm>
#include <iterator>

namespace gpumemprof {

Intervals::Ends::const_iterator Intervals::first_ending_from(uint64_t place) const {
  auto at = ends_.upper_bound(place);
  if (at != ends_.begin() && std::prev(at)->second >= place) --at;
  return at;
}

void Intervals::add(Interval interval) {
  if (interval.from >= interval.to) return;
  auto first = first_ending_from(interval.from);
  auto last = first;
  for (; last != ends_.end() && last->first <= interval.to; ++last) {
    interval.from = std::min(interval.from, last->first);
    interval.to = std::max(interval.to, last->second);
    ++steps_;
  }
  ends_.emplace_hint(ends_.erase(first, last), interval.from, interval.to);
}

void Intervals::add(const Intervals& others) {
  for (const auto& [from, to] : others) add({from, to});
}

template <class See>
void Intervals::each_within(uint64_t from, uint64_t to, const See& see) const {
  for (auto at = first_ending_from(from); at != ends_.end() && at->first < to; ++at) {
    const Interval part{std::max(at->first, from), std::min(at->second, to)};
    if (part.from < part.to) see(part);
  }
}

uint64_t Intervals::covered(uint64_t from, uint64_t to) const {
  uint64_t sum = 0;
  each_within(from, to, [&](const Interval& part) { sum += part.to - part.from; });
  return sum;
}

Intervals Intervals::within(uint64_t from, uint64_t to) const {
  Intervals out;
  each_within(from, to, [&](const Interval& part) { out.add(part); });
  return out;
}

uint64_t Intervals::missing() const {
  const uint64_t end = ends_.empty() ? 0 : ends_.rbegin()->second;
  return end - covered(0, end);
}

}  // namespace gpumemprof

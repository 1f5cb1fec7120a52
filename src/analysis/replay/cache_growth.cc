#include "analysis/replay/cache_growth.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "allocator/layout.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kLeastCacheBytes = 32 * kMiB;
constexpr uint64_t kForcedShare = 20, kIdleShare = 4;  // one part in so many of the peak
constexpr uint64_t kTimesAllocated = 3, kIdleEventsShare = 5;
constexpr size_t kLeastSizes = 4;  ///< of one site: with two or three, all soon have their blocks

/// One line of the program, in the whole trace.
struct RequestSite {
  absl::flat_hash_map<uint64_t, uint64_t> first_event_of;  ///< by the size that was asked for
  unsigned quarters = 0;  ///< of the trace in which it allocated: a bit each
};
constexpr unsigned kAllQuarters = 15;

using RequestSites = absl::flat_hash_map<uint32_t, RequestSite>;

/// Of the stacks that are keys of `sites` already.
void fill(const AllocatorTrace& trace, RequestSites* sites) {
  const uint64_t events = trace.events.size();
  for (uint64_t i = 0; i < events; ++i) {
    const AllocatorEvent event = trace.events[i];
    if (event.action != Action::kAlloc) continue;
    const auto site = sites->find(event.stack);
    if (site == sites->end()) continue;
    site->second.first_event_of.try_emplace(event.size_bytes, i);
    site->second.quarters |= 1u << (i * 4 / events);
  }
}

}  // namespace

void CacheGrowth::grew(uint64_t event, uint64_t bytes, const Simulator& simulator) {
  const AllocatorEvent of = trace_->events[event];
  const bool may_be_forced =
      of.action == Action::kAlloc && event >= trace_->events.size() / 2 && free_ >= of.size_bytes;
  if (!may_be_forced) return;
  const Simulator::Request request{
      .requested_bytes = of.size_bytes, .stream = of.stream, .pool = of.pool};
  const uint64_t needed = rounded_bytes(simulator, request);
  const uint64_t free = free_bytes(simulator, request);
  // Free by now is also what the new segment has more than was asked for.
  const uint64_t left_over = bytes - std::min(bytes, needed);
  if (free - std::min(free, left_over) >= needed) forced_.emplace_back(event, bytes);
}

void CacheGrowth::idle(uint64_t event, uint64_t releasable) {
  while (!lows_.empty() && lows_.back().second >= releasable) lows_.pop_back();
  lows_.emplace_back(event, releasable);
}

std::optional<VariableShapes> CacheGrowth::variable_shapes(uint64_t peak_reserved_bytes) const {
  VariableShapes found;
  RequestSites sites;
  for (const auto& [event, bytes] : forced_) {
    found.forced_bytes += bytes;
    sites.try_emplace(trace_->events[event].stack);
  }
  const uint64_t least = std::max(kLeastCacheBytes, peak_reserved_bytes / kForcedShare);
  if (found.forced_bytes < least) return std::nullopt;
  fill(*trace_, &sites);
  // A line that allocates throughout the trace and requests new sizes. One that has many
  // sizes because many layers go through it has asked for all of them in the first half.
  absl::flat_hash_map<uint32_t, uint64_t> bytes_of;
  uint64_t by_new_sizes = 0, most = 0;
  for (const auto& [event, bytes] : forced_) {
    const AllocatorEvent of = trace_->events[event];
    const RequestSite& site = sites[of.stack];
    if (site.quarters != kAllQuarters || site.first_event_of.size() < kLeastSizes) continue;
    if (site.first_event_of.at(of.size_bytes) != event) continue;
    ++found.forced_events;
    by_new_sizes += bytes;
    const uint64_t of_site = bytes_of[of.stack] += bytes;
    if (of_site <= most) continue;
    most = of_site;
    found.stack = of.stack;
    found.distinct_sizes = site.first_event_of.size();
  }
  if (by_new_sizes < least) return std::nullopt;
  found.forced_bytes = by_new_sizes;
  return found;
}

std::optional<IdleCache> CacheGrowth::idle_cache(uint64_t peak_reserved_bytes) const {
  const uint64_t events = trace_->events.size();
  const uint64_t least = std::max(kLeastCacheBytes, peak_reserved_bytes / kIdleShare);
  const auto low = std::ranges::find_if(lows_, [&](const auto& l) { return l.second >= least; });
  if (low == lows_.end() || events - low->first < events / kIdleEventsShare) return std::nullopt;
  IdleCache found{.bytes = low->second, .first_event = low->first};
  for (uint64_t i = low->first; i < events; ++i) {
    const AllocatorEvent event = trace_->events[i];
    if (event.action != Action::kAlloc) continue;
    ++found.alloc_events;
    found.allocated_bytes += event.size_bytes;
  }
  if (found.allocated_bytes / kTimesAllocated < peak_reserved_bytes) return std::nullopt;
  return found;
}

}  // namespace gpumemprof

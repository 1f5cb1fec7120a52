#include "allocator/release_cause.h"

namespace gpumemprof {

bool gives_back(Action action) {
  return action == Action::kSegmentFree || action == Action::kSegmentUnmap;
}

ReleaseCause release_cause(const AllocatorTrace& trace, uint64_t index) {
  uint64_t after = index;
  while (after < trace.events.size() && gives_back(trace.events[after].action)) ++after;
  if (after == trace.events.size()) return ReleaseCause::kCacheEmptied;
  const AllocatorEvent next = trace.events[after];
  const uint32_t stack = trace.events[index].stack;
  // Of an expandable segment that went back in part the rest may do, without another call.
  const bool may_be_rest = next.action == Action::kAlloc && stack != 0;
  const bool tries_again = next.action == Action::kSegmentAlloc || may_be_rest ||
                           next.action == Action::kSegmentMap || next.action == Action::kOom;
  if (!tries_again) return ReleaseCause::kCacheEmptied;
  if (stack == 0 || next.stack == 0) return ReleaseCause::kUnclear;
  return stack == next.stack ? ReleaseCause::kRetry : ReleaseCause::kCacheEmptied;
}

}  // namespace gpumemprof

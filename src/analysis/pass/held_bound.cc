#include "analysis/pass/held_bound.h"

#include <algorithm>

namespace gpumemprof {

void HeldBound::begin_several() {
  levels_ = {{kNone, last_.peak_bytes, 0},
             {only_thread_, last_.live_bytes + last_.freed_bytes, last_.time_ns}};
  freeing_of_.resize(size_t{only_thread_} + 1);
  freeing_of_[only_thread_] = {last_.freed_bytes};
  all_freeing_bytes_ = last_.freed_bytes;
  if (last_.freed_bytes != 0) next_end_ns_ = last_.time_ns + kLongestFreeNs;
  only_thread_ = kSeveral;
}

/// What was freed long before `now_ns` is gone from there on.
void HeldBound::end_frees(uint64_t now_ns) {
  next_end_ns_ = UINT64_MAX;
  for (size_t i = 1, count = levels_.size(); i < count; ++i) {
    const Level level = levels_[i];
    Free& freed = freeing_of_[level.thread];
    if (freed.bytes == 0 || freed.is_over) continue;
    const uint64_t end_ns = level.from_ns + kLongestFreeNs;
    if (now_ns <= end_ns) {
      next_end_ns_ = std::min(next_end_ns_, end_ns);
      continue;
    }
    all_freeing_bytes_ -= freed.bytes;
    freed.is_over = true;
    levels_.push_back({level.thread, 0, now_ns, true});
  }
}

/// The level before it goes on in its place.
void HeldBound::remove(size_t level) {
  levels_[level - 1].most_bytes = std::max(levels_[level - 1].most_bytes, levels_[level].most_bytes);
  levels_.erase(levels_.begin() + static_cast<ptrdiff_t>(level));
}

void HeldBound::add_among_threads(const Event& event) {
  const uint32_t thread = event.thread < kSeveral ? event.thread : 0;  // of a damaged file
  if (only_thread_ == kNone) {
    only_thread_ = thread, last_ = event;
    return;
  }
  if (only_thread_ != kSeveral) begin_several();
  if (thread >= freeing_of_.size()) freeing_of_.resize(size_t{thread} + 1);
  if (event.time_ns > next_end_ns_) end_frees(event.time_ns);
  const Free freed = freeing_of_[thread].bytes == kNoEvent ? Free{0} : freeing_of_[thread];
  // From the thread's last event on, else from the start.
  size_t at = 0, after_free = freed.is_over ? 0 : levels_.size();
  for (size_t i = levels_.size(); i-- > 1;)
    if (levels_[i].thread == thread) (levels_[i].is_after_free ? after_free : at) = i;
  for (size_t i = at; i < levels_.size(); ++i) {
    const uint64_t gone_before = i < after_free ? freed.bytes : 0;
    levels_[i].most_bytes += event.allocated_bytes - std::min(event.allocated_bytes, gone_before);
  }
  if (after_free > 0 && after_free < levels_.size()) remove(after_free);
  if (at > 0) remove(at);
  all_freeing_bytes_ += event.freed_bytes - (freed.is_over ? 0 : freed.bytes);
  freeing_of_[thread] = {event.freed_bytes};
  levels_.push_back({thread, event.live_bytes + all_freeing_bytes_, event.time_ns});
  if (event.freed_bytes != 0) next_end_ns_ = std::min(next_end_ns_, event.time_ns + kLongestFreeNs);
  while (levels_.size() > kMostLevels) remove(1);
  last_ = event;
}

uint64_t HeldBound::most_bytes() const {
  uint64_t most = last_.peak_bytes;
  for (const Level& level : levels_) most = std::max(most, level.most_bytes);
  return most;
}

uint32_t HeldBound::threads() const {
  if (only_thread_ != kSeveral) return only_thread_ == kNone ? 0 : 1;
  return static_cast<uint32_t>(std::ranges::count_if(
      freeing_of_, [](const Free& one) { return one.bytes != kNoEvent; }));
}

}  // namespace gpumemprof

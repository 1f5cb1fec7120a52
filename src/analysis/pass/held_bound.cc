#include "analysis/pass/held_bound.h"

#include <algorithm>

namespace gpumemprof {

void HeldBound::begin_several(uint64_t live_before) {
  levels_ = {{kNone, peak_bytes_}, {only_thread_, live_before + freeing_bytes_}};
  freeing_of_.assign(size_t{only_thread_} + 1, kNoEvent);
  freeing_of_[only_thread_] = all_freeing_bytes_ = freeing_bytes_;
  only_thread_ = kSeveral;
}

void HeldBound::add_among_threads(uint32_t thread, uint64_t allocated_bytes, uint64_t freed_bytes,
                                  uint64_t live_bytes, uint64_t peak_bytes) {
  if (thread >= kSeveral) thread = 0;  // of a damaged file
  if (only_thread_ == kNone) {
    only_thread_ = thread;
    return add(thread, allocated_bytes, freed_bytes, live_bytes, peak_bytes);
  }
  if (only_thread_ != kSeveral) begin_several(live_bytes_);
  if (thread >= freeing_of_.size()) freeing_of_.resize(size_t{thread} + 1, kNoEvent);
  // From the thread's last event on, else from the start.
  size_t at = levels_.size() - 1;
  while (at > 0 && levels_[at].thread != thread) --at;
  const uint64_t freeing = freeing_of_[thread] == kNoEvent ? 0 : freeing_of_[thread];
  if (allocated_bytes > freeing) {
    for (size_t i = at; i < levels_.size(); ++i) levels_[i].most_bytes += allocated_bytes - freeing;
  }
  if (at > 0) {
    levels_[at - 1].most_bytes = std::max(levels_[at - 1].most_bytes, levels_[at].most_bytes);
    levels_.erase(levels_.begin() + static_cast<ptrdiff_t>(at));
  }
  all_freeing_bytes_ += freed_bytes - freeing;
  freeing_of_[thread] = freed_bytes;
  levels_.push_back({thread, live_bytes + all_freeing_bytes_});
  if (levels_.size() > kMostLevels) {
    levels_[0].most_bytes = std::max(levels_[0].most_bytes, levels_[1].most_bytes);
    levels_.erase(levels_.begin() + 1);
  }
}

uint64_t HeldBound::most_bytes() const {
  uint64_t most = peak_bytes_;
  for (const Level& level : levels_) most = std::max(most, level.most_bytes);
  return most;
}

uint32_t HeldBound::threads() const {
  if (only_thread_ != kSeveral) return only_thread_ == kNone ? 0 : 1;
  return static_cast<uint32_t>(std::ranges::count_if(
      freeing_of_, [](uint64_t freeing) { return freeing != kNoEvent; }));
}

}  // namespace gpumemprof

#include "base/large_pages.h"

#include <iterator>

namespace gpumemprof {

FreedLargePages& FreedLargePages::get() {
  static auto* const pages = new FreedLargePages;  // outlives every table
  return *pages;
}

void FreedLargePages::keep_up_to(size_t bytes) {
  const std::lock_guard lock(mutex_);
  most_bytes_ = bytes;
}

void* FreedLargePages::take(size_t bytes) {
  const std::lock_guard lock(mutex_);
  auto best = regions_.end();
  for (auto region = regions_.begin(); region != regions_.end(); ++region) {
    if (region->second < bytes) continue;
    if (best == regions_.end() || region->second < best->second) best = region;
  }
  if (best != regions_.end()) {
    const auto [begin, kept] = *best;
    regions_.erase(best);
    if (kept > bytes) regions_.emplace(begin + bytes, kept - bytes);
    kept_bytes_ -= bytes;
    return begin;
  }
  // None of them is of use to it.
  for (const auto& [begin, kept] : regions_) munmap(begin, kept);
  regions_.clear(), kept_bytes_ = 0;
  return map_large_pages(bytes);
}

void FreedLargePages::give(void* memory, size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (kept_bytes_ + bytes > most_bytes_) {
    munmap(memory, bytes);
    return;
  }
  kept_bytes_ += bytes;
  auto* begin = static_cast<char*>(memory);
  auto after = regions_.lower_bound(begin);
  if (after != regions_.end() && begin + bytes == after->first) {
    bytes += after->second;
    after = regions_.erase(after);
  }
  if (after != regions_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      before->second += bytes;
      return;
    }
  }
  regions_.emplace_hint(after, begin, bytes);
}

}  // namespace gpumemprof

#include "analysis/statistics/timeline.h"

#include <algorithm>

namespace gpumemprof {

Timeline::Timeline(uint64_t start_ns, size_t capacity, uint64_t live_bytes)
    : start_ns_(start_ns),
      initial_bytes_(live_bytes),
      capacity_(std::max<size_t>(capacity + capacity % 2, 2)) {
  buckets_.reserve(capacity_);
}

size_t Timeline::grow(uint64_t elapsed) {
  while (elapsed >> shift_ >= capacity_) merge_neighbours();
  const size_t index = static_cast<size_t>(elapsed >> shift_);
  if (index >= buckets_.size()) buckets_.resize(index + 1);
  return index;
}

void Timeline::merge_neighbours() {
  const size_t merged_size = (buckets_.size() + 1) / 2;
  for (size_t i = 0; i < merged_size; ++i) {
    TimelineBucket merged = buckets_[2 * i];
    if (2 * i + 1 < buckets_.size() && buckets_[2 * i + 1].events != 0) {
      const TimelineBucket& next = buckets_[2 * i + 1];
      merged.min_bytes =
          merged.events ? std::min(merged.min_bytes, next.min_bytes) : next.min_bytes;
      merged.max_bytes = std::max(merged.max_bytes, next.max_bytes);
      merged.last_bytes = next.last_bytes;
      merged.alloc_count += next.alloc_count;
      merged.alloc_bytes += next.alloc_bytes;
      merged.events += next.events;
    }
    buckets_[i] = merged;
  }
  buckets_.resize(merged_size);
  ++shift_;
}

void Timeline::finish(uint64_t end_ns) {
  if (capacity_ == 0) return;
  const uint64_t elapsed = end_ns > start_ns_ ? end_ns - start_ns_ : 0;
  if (static_cast<size_t>(elapsed >> shift_) >= buckets_.size()) grow(elapsed);
  uint64_t level = initial_bytes_;
  for (TimelineBucket& bucket : buckets_) {
    if (bucket.events == 0) {
      bucket.min_bytes = bucket.max_bytes = bucket.last_bytes = level;
    } else {
      bucket.min_bytes = std::min(bucket.min_bytes, level);
      bucket.max_bytes = std::max(bucket.max_bytes, level);
    }
    level = bucket.last_bytes;
  }
}

}  // namespace gpumemprof

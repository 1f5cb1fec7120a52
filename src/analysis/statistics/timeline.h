// Live bytes over time in a fixed number of buckets, whatever the length of the recording.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpumemprof {

/// The events within one span of time.
struct TimelineBucket {
  uint64_t min_bytes = 0;
  uint64_t max_bytes = 0;
  uint64_t last_bytes = 0;
  uint64_t alloc_count = 0;
  uint64_t alloc_bytes = 0;
  uint64_t events = 0;  ///< while the timeline is built: 0 marks a bucket that was not touched
};

/// Buckets of equal width, a power of two of nanoseconds. When an event falls beyond the last
/// bucket, neighbours are merged and the width doubles, so that memory is bounded and every minimum
/// and maximum stays exact.
class Timeline {
 public:
  Timeline() = default;
  /// `capacity` is rounded up to an even number; `live_bytes` is what was live before the first
  /// event.
  Timeline(uint64_t start_ns, size_t capacity, uint64_t live_bytes);

  /// A time before the start counts as the start (a clock that went backwards in a damaged file).
  void add(uint64_t time_ns, uint64_t live_bytes) { touch(time_ns, live_bytes); }
  void add_alloc(uint64_t time_ns, uint64_t live_bytes, uint64_t size_bytes) {
    TimelineBucket& bucket = touch(time_ns, live_bytes);
    ++bucket.alloc_count;
    bucket.alloc_bytes += size_bytes;
  }
  /// Ends the timeline at `end_ns` and gives every bucket the level it began with. Call once, last.
  void finish(uint64_t end_ns);

  uint64_t start_ns() const { return start_ns_; }
  uint64_t bucket_ns() const { return uint64_t{1} << shift_; }
  /// At most the capacity; without gaps after finish().
  const std::vector<TimelineBucket>& buckets() const { return buckets_; }

 private:
  static constexpr unsigned kFirstShift = 10;  // about a microsecond

  TimelineBucket& touch(uint64_t time_ns, uint64_t live_bytes) {
    uint64_t elapsed = time_ns > start_ns_ ? time_ns - start_ns_ : 0;
    size_t index = static_cast<size_t>(elapsed >> shift_);
    if (index >= buckets_.size()) [[unlikely]]
      index = grow(elapsed);
    TimelineBucket& bucket = buckets_[index];
    if (bucket.events++ == 0) {
      bucket.min_bytes = bucket.max_bytes = live_bytes;
    } else {
      bucket.min_bytes = live_bytes < bucket.min_bytes ? live_bytes : bucket.min_bytes;
      bucket.max_bytes = live_bytes > bucket.max_bytes ? live_bytes : bucket.max_bytes;
    }
    bucket.last_bytes = live_bytes;
    return bucket;
  }
  size_t grow(uint64_t elapsed);
  void merge_neighbours();

  uint64_t start_ns_ = 0;
  uint64_t initial_bytes_ = 0;
  size_t capacity_ = 0;
  unsigned shift_ = kFirstShift;
  std::vector<TimelineBucket> buckets_;
};

}  // namespace gpumemprof

// A run of events in time order, and the merging of many of them into one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trace/event.h"
#include "trace/event_source.h"

namespace gpumemprof {

inline constexpr uint64_t kNoTime = UINT64_MAX;
inline constexpr size_t kBatchEvents = 65536;
inline constexpr size_t kBatchMarks = 4 * kBatchEvents;

/// Blocks of events, each in time order and none before the previous one's end.
class Lane {
 public:
  virtual ~Lane() = default;
  /// A lower bound for the times of the blocks to come; kNoTime at the end. Reads nothing.
  virtual uint64_t next_time() const = 0;
  /// Fills `block` with the next events; false at the end. May leave it empty and return true.
  virtual bool load(EventBatch* block) = 0;
  /// The losses of the file so far.
  virtual uint64_t bytes_read() const = 0;
};

/// Merges lanes by time. At equal times frees and marks come before allocations (a block is freed
/// before its address is reused), then the order in which lanes were added. Order within a lane is
/// kept. Memory: one block for every lane that has begun and not ended. Not thread-safe.
class Merger {
 public:
  void add(std::unique_ptr<Lane> lane);
  /// Clears `batch` and appends up to kBatchEvents events before `end_time`, with their marks.
  /// False if there are none; a batch of marks only comes last or not at all.
  bool next(EventBatch* batch, uint64_t end_time = kNoTime);
  uint64_t bytes_read() const;
  size_t lane_count() const { return lanes_.size(); }
  Lane& lane(size_t index) { return *lanes_[index].lane; }
  /// How many events of its current block a lane has yielded; for the sealer's accounts.
  size_t taken(size_t index) const { return lanes_[index].taken; }
  size_t marks_taken(size_t index) const { return lanes_[index].marks_taken; }
  /// Events out of time order, because a chunk's header has wrong times; they get the time of the
  /// previous event.
  uint64_t clamped() const { return clamped_; }

 private:
  struct Open {
    std::unique_ptr<Lane> lane;
    EventBatch block;
    size_t at = 0;
    size_t taken = 0;  // as `at`, but it stays where the whole block was handed over
    size_t marks_taken = 0;
    size_t totals_at = 0, requested_at = 0, details_at = 0, marks_at = 0;

    bool is_used_up() const { return at >= block.size() && marks_at >= block.marks.size(); }
    /// The next item is a mark, not an event.
    bool is_at_mark() const {
      return marks_at < block.marks.size() && block.marks[marks_at].before_event <= at;
    }
    void begin_again() {
      at = taken = marks_taken = 0;
      totals_at = requested_at = details_at = marks_at = 0;
    }
  };
  /// Times use 56 bits, so the lowest bit can say "an allocation".
  struct Head {
    uint64_t key;
    uint32_t lane;
    bool operator>(const Head& other) const {
      return key != other.key ? key > other.key : lane > other.lane;
    }
  };
  static uint64_t key_of(const EventBatch& block, size_t at);
  static uint64_t key_of(const Mark& mark) { return mark.time_ns << 1; }
  void push(uint32_t lane);
  uint64_t last_key_before_others(uint64_t end_time) const;
  static size_t marks_until(const Open& open, size_t n, uint64_t last_key);
  size_t run_length(const Open& open, const Head& self, size_t most, uint64_t end_time) const;
  void take(Open* open, size_t n, size_t marks, EventBatch* batch);

  std::vector<Open> lanes_;
  std::vector<Head> heap_;  // the earliest first
  uint64_t last_time_ = 0;
  uint64_t clamped_ = 0;
};

}  // namespace gpumemprof

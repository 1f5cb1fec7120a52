// A run of events in time order, and the merging of many of them into one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "trace/event.h"
#include "trace/event_source.h"

namespace gpumemprof {

inline constexpr uint64_t kNoTime = UINT64_MAX;
inline constexpr size_t kBatchEvents = 65536;

/// Blocks of events, each in time order and none before the last one's end.
class Lane {
 public:
  virtual ~Lane() = default;
  /// No event of the blocks to come is before this; kNoTime at the end. Reads nothing.
  virtual uint64_t next_time() const = 0;
  /// Fills `block` with the next events; false at the end. May leave it empty and answer true.
  virtual bool load(EventBatch* block) = 0;
  /// Of the file, so far.
  virtual uint64_t bytes_read() const = 0;
};

/// Merges lanes by time; at equal times frees before allocations (a block is freed before its
/// address is given out again), then by the order in which the lanes were added. Within a lane
/// order is kept as it is. Memory: one block for every lane that has begun and not ended. Not
/// thread-safe.
class Merger {
 public:
  void add(std::unique_ptr<Lane> lane);
  /// Appends up to kBatchEvents events before `end_time` to `batch` (cleared first). False where
  /// there are none.
  bool next(EventBatch* batch, uint64_t end_time = kNoTime);
  uint64_t bytes_read() const;
  size_t lane_count() const { return lanes_.size(); }
  Lane& lane(size_t index) { return *lanes_[index].lane; }
  /// How many events of its current block a lane has given away; for the sealer's accounts.
  size_t taken(size_t index) const { return lanes_[index].taken; }
  /// Events that came too late for their place, because a chunk's header lied about its times; they
  /// are shown at the time of the event before them.
  uint64_t clamped() const { return clamped_; }

 private:
  struct Open {
    std::unique_ptr<Lane> lane;
    EventBatch block;
    size_t at = 0;
    size_t taken = 0;  // as `at`, but it stays where the whole block was handed over
    size_t totals_at = 0, requested_at = 0;
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
  void push(uint32_t lane);
  size_t run_length(const Open& open, const Head& self, size_t most, uint64_t end_time) const;
  void take(Open* open, size_t n, EventBatch* batch);

  std::vector<Open> lanes_;
  std::vector<Head> heap_;  // the earliest first
  uint64_t last_time_ = 0;
  uint64_t clamped_ = 0;
};

}  // namespace gpumemprof

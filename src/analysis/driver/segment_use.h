// Which of a framework's segments its live blocks pin. What is free in those cannot go back to the
// device, and serves only requests that fit into a hole of one of them.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>

namespace gpumemprof {

/// Told of ranges that a framework's libraries have of the driver, and of its allocator's blocks in
/// them. A range becomes a segment with its first block: others are no allocator's. Costs a look-up
/// an event; memory for what is live.
class SegmentUse {
 public:
  void range_came(uint64_t address, uint64_t bytes);
  void range_went(uint64_t address);
  void forget_ranges();
  void block_came(uint64_t address, uint64_t bytes);
  /// `is_delayed`: streams still use it, so that it pins until block_went().
  void block_freed(uint64_t address, bool is_delayed);
  void block_went(uint64_t address);

  /// False where following cost too much, as of files that make up millions of ranges.
  bool is_followed() const { return work_ < kMostWork; }
  uint64_t segments_bytes() const { return segments_bytes_; }
  uint64_t allocated_bytes() const { return allocated_bytes_; }
  /// Free bytes of segments with a live block.
  uint64_t pinned_free_bytes() const { return pinned_free_bytes_; }

 private:
  static constexpr uint64_t kMostWork = 2'000'000'000;

  struct Range {
    uint64_t bytes = 0, allocated_bytes = 0, blocks = 0;
    bool is_segment = false;
    uint64_t pinned_free() const { return blocks != 0 ? bytes - allocated_bytes : 0; }
  };
  struct Held {
    uint64_t bytes = 0;
    bool is_waiting = false;
  };
  /// Calls `change` with each range that the block lies in, and how much of it.
  template <class Change>
  void for_ranges(uint64_t address, uint64_t bytes, Change change);
  void drop(const Range& range);

  absl::btree_map<uint64_t, Range> ranges_;  // by address; they never overlap
  absl::flat_hash_map<uint64_t, Held> blocks_;
  uint64_t segments_bytes_ = 0, allocated_bytes_ = 0, pinned_free_bytes_ = 0, work_ = 0;
};

}  // namespace gpumemprof

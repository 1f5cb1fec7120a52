// One device's caching allocator, event by event: its trace and its state.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <string>
#include <utility>

#include "trace/allocator_trace.h"
#include "trace/event.h"

namespace gpumemprof {

/// One event with everything known of it.
struct HistoryEvent {
  Action action = Action::kAlloc;
  uint64_t address = 0;
  uint64_t size_bytes = 0;       ///< of the block or segment
  uint64_t requested_bytes = 0;  ///< kAlloc
  int64_t time_us = 0;
  uint32_t stack = 0;
  AllocatorDetail detail;
};

/// Converts a recording into PyTorch's own history: both halves of every free, the streams of
/// frees, the final segments and blocks. Not thread-safe.
class DeviceHistory {
 public:
  DeviceHistory(int32_t device, bool has_pools);
  void add(const HistoryEvent& event);
  const AllocatorEvents& events() const { return trace_.events; }
  /// The size of the live block at `address`, or 0.
  uint64_t block_bytes(uint64_t address) const {
    const auto known = live_.find(address);
    return known == live_.end() ? 0 : known->second.size_bytes;
  }
  /// The trace with the final segments. Call once, last.
  AllocatorTrace finish();
  /// The first impossible event of a history that is complete, in one phrase; empty if there is
  /// none.
  const std::string& contradiction() const { return contradiction_; }

 private:
  struct Live {
    uint64_t size_bytes, requested_bytes;
    uint32_t stack;
    uint16_t stream, pool;
    bool is_pending;
  };
  struct Range {  // a cudaMalloc, or mapped bytes without a gap
    uint64_t end;
    uint32_t stack;
    uint16_t stream, pool;
    bool is_expandable, is_large;
  };
  using Ranges = absl::btree_map<uint64_t, Range>;

  AllocatorEvent base(const HistoryEvent& event);
  uint16_t stream_index(int64_t stream);
  uint16_t pool_index(std::pair<int64_t, int64_t> pool);
  Ranges::iterator range_at(uint64_t address);
  void allocate(const HistoryEvent& event);
  void free(const HistoryEvent& event);
  void complete(const HistoryEvent& event);
  void add_range(const HistoryEvent& event, bool is_expandable);
  void remove_range(const HistoryEvent& event);
  void contradict(const HistoryEvent& event, const char* what);
  AllocatorSegment segment_of(uint64_t begin, const Range& range) const;
  void add_block(const AllocatorBlock& block, AllocatorSegment* segment) const;

  AllocatorTrace trace_;
  absl::flat_hash_map<int64_t, uint16_t> streams_;
  absl::flat_hash_map<std::pair<int64_t, int64_t>, uint16_t> pools_;
  absl::flat_hash_map<uint64_t, Live> live_;
  Ranges ranges_;
  std::string contradiction_;
};

}  // namespace gpumemprof

// What was live before a trace began: the end state, walked backwards. The one place that decides
// it, for streams of events, replays and what-ifs alike.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/allocator_trace.h"

namespace gpumemprof {

/// What a trace records, and how.
struct TraceFacts {
  uint64_t allocations = 0;
  bool records_requests = false;     ///< there are free_requested events
  bool records_completions = false;  ///< there are free_completed events
  /// Segments of private pools at the end, by address: where events do not name their pool.
  struct PoolRange {
    uint64_t begin, end;
    uint16_t pool;
  };
  std::vector<PoolRange> private_ranges;
  /// True for the event after which a block is gone.
  bool ends_block(const AllocatorEvent& event) const {
    return event.action == Action::kFreeCompleted ||
           (event.action == Action::kFreeRequested && !records_completions);
  }
  /// The pool of a request whose block was at `event.address`.
  uint16_t pool_of(const AllocatorTrace& trace, const AllocatorEvent& event) const {
    if (trace.has_pools || private_ranges.empty()) return event.pool;
    return pool_at(event);
  }

 private:
  uint16_t pool_at(const AllocatorEvent& event) const;
};
TraceFacts trace_facts(const AllocatorTrace& trace);

/// A block that was live before the first event.
struct EarlierBlock {
  uint64_t address = 0;
  uint64_t requested_bytes = 0;
  uint64_t size_bytes = 0;      ///< 0: not known, as the block is gone at the end
  uint64_t free_event = ~0ull;  ///< first event that frees it; all ones: live to the end
  /// Of its allocation where it lived to the end; else 0, as an event of a free has the stack of
  /// the free.
  uint32_t stack = 0;
  uint16_t stream = 0;
  uint16_t pool = 0;
  bool is_pending = false;  ///< its free had been requested already
};

struct TraceStart {
  TraceFacts facts;
  std::vector<EarlierBlock> blocks;  ///< by address
  size_t most_live = 0;              ///< blocks at one moment, or a few more or less
  uint64_t contradictions = 0;       ///< addresses allocated or freed twice in a row
};

/// One pass over the events; memory O(live blocks). `facts` may differ from those of the trace
/// alone where others are read together with it.
TraceStart trace_start(const AllocatorTrace& trace, TraceFacts facts);
TraceStart trace_start(const AllocatorTrace& trace);

}  // namespace gpumemprof

// What was live before a trace began: the final state, walked backwards. The only place that
// decides it, for streams of events, replays and what-ifs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/large_pages.h"
#include "trace/address_map.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// What a trace records, and how.
struct TraceFacts {
  uint64_t allocations = 0;
  bool records_requests = false;     ///< there are free_requested events
  /// A free has a second event, free_completed: there are some, or a block waits for its own at
  /// the end.
  bool records_completions = false;
  /// Segments of private pools at the end, by address, if events do not name their pool.
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
  /// The pool of a request for a block at `event.address`.
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
  /// The stack of its allocation if it lived to the end; otherwise 0, because a free has the stack
  /// of the free.
  uint32_t stack = 0;
  uint16_t stream = 0;
  uint16_t pool = 0;
  bool is_pending = false;  ///< its free had been requested already
  uint32_t number = 0;      ///< as in TraceStart::numbers
};

/// What was live before the first event, and a number for each block. Addresses are looked up only
/// here, not by later passes over the events.
struct TraceStart {
  static constexpr uint32_t kNoNumber = UINT32_MAX;

  TraceFacts facts;
  std::vector<EarlierBlock> blocks;  ///< by address
  /// The number of the block that an event begins, ends or asks to end; kNoNumber for other events.
  /// No two live blocks have the same number; it is reused after its block is gone. If the trace
  /// contradicts itself, an address keeps one number throughout.
  std::vector<uint32_t, LargePages<uint32_t>> numbers;  ///< by event
  uint32_t number_count = 0;                            ///< all are below it
  uint64_t contradictions = 0;  ///< addresses allocated or freed twice in a row

  /// The number of an address in a trace that contradicts itself; none if no event names it.
  std::optional<uint32_t> number_of(uint64_t address) const;
  AddressMap by_address;  ///< what number_of() knows
};

/// One pass over the events; memory O(events): 4 bytes each. `facts` may differ from those of the
/// trace alone if others are read together with it.
TraceStart trace_start(const AllocatorTrace& trace, TraceFacts facts);
TraceStart trace_start(const AllocatorTrace& trace);

}  // namespace gpumemprof

// What an allocator held before the first event of a trace: the end state, walked backwards.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/config.h"
#include "allocator/simulator_state.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// A block that was live before the first event.
struct EarlierBlock {
  uint64_t address = 0;
  uint64_t requested_bytes = 0;
  uint64_t size_bytes = 0;      ///< 0: not known, as the block is gone at the end
  uint64_t free_event = ~0ull;  ///< first event that frees it; all ones: live to the end
  uint32_t stack = 0;           ///< of its allocation where it lived to the end
  uint16_t stream = 0;
  uint16_t pool = 0;
  bool is_pending = false;  ///< its free had been requested already
};

/// One segment of the beginning and the pieces it was in.
struct EarlierSegment {
  SimulatedSegment segment;
  std::vector<SeedBlock> pieces;
};

struct InitialState {
  std::vector<EarlierBlock> blocks;      ///< by address
  std::vector<EarlierSegment> segments;  ///< by address
  uint64_t impossible_blocks = 0;        ///< outside every segment, or over one another: left out
  uint64_t contradictions = 0;           ///< addresses allocated or freed twice in a row
};

/// What a trace records, and how. One pass.
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
  bool ends_block(const AllocatorEvent& event) const;
  /// The pool of a request whose block was at `event.address`.
  uint16_t pool_of(const AllocatorTrace& trace, const AllocatorEvent& event) const;
};
TraceFacts trace_facts(const AllocatorTrace& trace);

/// The blocks that were live before the first event, without the segments.
InitialState earlier_blocks(const AllocatorTrace& trace, const TraceFacts& facts);

/// Blocks and segments. Sizes that are not known follow from the rules of `config` and from where
/// later blocks were put.
InitialState initial_state(const AllocatorTrace& trace, const TraceFacts& facts,
                           const AllocatorConfig& config, const Release& release);

}  // namespace gpumemprof

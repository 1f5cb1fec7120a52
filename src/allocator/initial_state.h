// What an allocator had reserved before the first event of a trace, and the pieces it was in.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/config.h"
#include "allocator/simulator_state.h"
#include "trace/allocator_trace.h"
#include "trace/trace_start.h"

namespace gpumemprof {

/// One segment of the beginning and the pieces it was in.
struct EarlierSegment {
  SimulatedSegment segment;
  std::vector<SeedBlock> pieces;
};

struct InitialState {
  std::vector<EarlierSegment> segments;  ///< by address
  uint64_t impossible_blocks = 0;        ///< outside every segment, or over one another: left out
};

/// The segments before the first event, with the blocks of `start` in them. Sizes that are not
/// known follow from the rules of `config` and from where later blocks were put.
InitialState initial_state(const AllocatorTrace& trace, const TraceStart& start,
                           const AllocatorConfig& config, const Release& release);

}  // namespace gpumemprof

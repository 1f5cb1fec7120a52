// Begins early what a replay will wait for: with many live blocks nearly every block that is freed
// has left the caches, with its neighbours.
#pragma once

#include <vector>

#include "allocator/simulator_state.h"
#include "base/prefetch.h"
#include "trace/allocator_trace.h"
#include "trace/trace_start.h"

namespace gpumemprof {

/// Changes nothing but what the caches hold. `live` has blocks by the numbers of `start`. All must
/// outlive it.
class LookAhead {
 public:
  LookAhead(const TraceStart& start, const std::vector<BlockId>& live,
            const Simulator::State& state)
      : numbers_(start.numbers), live_(live), state_(state) {}

  /// Before event `index` is done.
  void before(size_t index) const {
    if (live_.size() < kFewBlocks || index + kNear >= numbers_.size()) return;
    if (const SimulatedBlock* block = block_of(index + kNear)) prefetch_line(block);
    if (const SimulatedBlock* block = block_of(index + kNext)) {
      prefetch_line(&state_.blocks[block->previous]);
      prefetch_line(&state_.blocks[block->next]);
    }
  }

 private:
  static constexpr size_t kFewBlocks = 4096;       // the caches keep them
  static constexpr size_t kNear = 20, kNext = 10;  // events

  /// Of a free; an allocation's number is nobody's yet.
  const SimulatedBlock* block_of(size_t index) const {
    const uint32_t number = numbers_[index];
    const BlockId id = number < live_.size() ? live_[number] : kNoBlock;
    return id == kNoBlock ? nullptr : &state_.blocks[id];
  }

  const decltype(TraceStart::numbers)& numbers_;
  const std::vector<BlockId>& live_;
  const Simulator::State& state_;
};

}  // namespace gpumemprof

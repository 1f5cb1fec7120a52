// Begins early what a replay will wait for: with many live blocks nearly every block that is freed
// has left the caches, with its neighbours and its place in the table of addresses.
#pragma once

#include "allocator/simulator_state.h"
#include "trace/address_map.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

/// Changes nothing but what the caches hold. The three must outlive it.
class LookAhead {
 public:
  LookAhead(const AllocatorEvents& events, const AddressMap& live, const Simulator::State& state)
      : events_(events), live_(live), state_(state) {}

  /// Before event `index` is done.
  void before(size_t index) const {
    if (live_.size() < kFewBlocks || index + kFar >= events_.size()) return;
    live_.prefetch(events_[index + kFar].address);
    if (const SimulatedBlock* block = block_of(events_[index + kNear])) __builtin_prefetch(block);
    if (const SimulatedBlock* block = block_of(events_[index + kNext])) {
      __builtin_prefetch(&state_.blocks[block->previous]);
      __builtin_prefetch(&state_.blocks[block->next]);
    }
  }

 private:
  static constexpr size_t kFewBlocks = 4096;                  // the caches keep them
  static constexpr size_t kFar = 32, kNear = 20, kNext = 10;  // events

  const SimulatedBlock* block_of(const AllocatorEvent& event) const {
    if (event.action != Action::kFreeRequested) return nullptr;
    const uint32_t* id = live_.find(event.address);
    return id ? &state_.blocks[*id] : nullptr;
  }

  const AllocatorEvents& events_;
  const AddressMap& live_;
  const Simulator::State& state_;
};

}  // namespace gpumemprof

// Which blocks were live before a trace began, from what it frees and what is left at its end.
#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "allocator/initial_state.h"

namespace gpumemprof {

uint16_t TraceFacts::pool_of(const AllocatorTrace& trace, const AllocatorEvent& event) const {
  if (trace.has_pools || private_ranges.empty()) return event.pool;
  const auto above = std::ranges::upper_bound(private_ranges, event.address, {}, &PoolRange::begin);
  if (above == private_ranges.begin()) return event.pool;
  const PoolRange& range = *std::prev(above);
  return event.address < range.end ? range.pool : event.pool;
}

TraceFacts trace_facts(const AllocatorTrace& trace) {
  TraceFacts facts;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    switch (trace.events[i].action) {
      case Action::kAlloc:
        ++facts.allocations;
        break;
      case Action::kFreeRequested:
        facts.records_requests = true;
        break;
      case Action::kFreeCompleted:
        facts.records_completions = true;
        break;
      default:
        break;
    }
  }
  for (const AllocatorSegment& segment : trace.segments) {
    if (segment.pool == 0) continue;
    facts.private_ranges.push_back(
        {segment.address, segment.address + segment.size_bytes, segment.pool});
  }
  std::ranges::sort(facts.private_ranges, {}, &TraceFacts::PoolRange::begin);
  return facts;
}

InitialState earlier_blocks(const AllocatorTrace& trace, const TraceFacts& facts) {
  InitialState out;
  absl::flat_hash_map<uint64_t, EarlierBlock> live;
  for (const AllocatorSegment& segment : trace.segments) {
    for (const AllocatorBlock& block : segment.blocks) {
      if (block.state == BlockState::kFree) continue;
      live[block.address] = {.address = block.address,
                             .requested_bytes = block.requested_bytes,
                             .size_bytes = block.size_bytes,
                             .stack = block.stack,
                             .stream = segment.stream,
                             .pool = segment.pool,
                             .is_pending = block.state == BlockState::kPendingFree};
    }
  }
  // Backwards: a free makes its block live before it, an allocation ends what is known of it.
  EarlierBlock* last = nullptr;  // a request stands right before its completion, nearly always
  for (size_t i = trace.events.size(); i-- > 0;) {
    const AllocatorEvent event = trace.events[i];
    const bool completes = event.action == Action::kFreeCompleted ||
                           (event.action == Action::kFreeRequested && !facts.records_completions);
    if (completes) {
      const auto [found, is_new] = live.try_emplace(event.address);
      if (!is_new) out.doubtful.insert(event.address);
      last = &found->second;
      *last = {.address = event.address,
               .requested_bytes = event.size_bytes,
               .free_event = i,
               .stream = event.stream,
               .pool = facts.pool_of(trace, event),
               .is_pending = facts.records_requests && facts.records_completions};
    } else if (event.action == Action::kFreeRequested) {
      if (last == nullptr || last->address != event.address) {
        const auto found = live.find(event.address);
        if (found == live.end()) {
          out.doubtful.insert(event.address);
          continue;
        }
        last = &found->second;
      }
      last->is_pending = false;
    } else if (event.action == Action::kAlloc) {
      last = nullptr;
      if (live.erase(event.address) == 0) out.doubtful.insert(event.address);
    }
  }
  out.blocks.reserve(live.size());
  for (const auto& [address, block] : live) out.blocks.push_back(block);
  std::ranges::sort(out.blocks, {}, &EarlierBlock::address);
  return out;
}

}  // namespace gpumemprof

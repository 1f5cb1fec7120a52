// Which blocks were live before a trace began, from what it frees and what is left at its end.
#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <optional>

#include "allocator/initial_state.h"

namespace gpumemprof {
namespace {

using Blocks = absl::flat_hash_map<uint64_t, EarlierBlock>;

/// All that a trace says of one address where it contradicts itself.
struct Account {
  int64_t balance = 0;  ///< blocks there at the end and frees, less allocations
  std::optional<EarlierBlock> first_freed;
};

/// Where an address is allocated or freed twice in a row some event is wrong, and reading backwards
/// alone would believe the wrong one. The count is right even where two events were exchanged: what
/// was freed or is left, and was not allocated, was there before.
void settle_by_counting(const AllocatorTrace& trace, const TraceFacts& facts,
                        const absl::flat_hash_set<uint64_t>& doubtful, Blocks* live) {
  absl::flat_hash_map<uint64_t, Account> accounts;
  for (uint64_t address : doubtful) accounts[address];
  for (const AllocatorSegment& segment : trace.segments) {
    for (const AllocatorBlock& block : segment.blocks) {
      const auto account = accounts.find(block.address);
      if (account != accounts.end() && block.state != BlockState::kFree) ++account->second.balance;
    }
  }
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const AllocatorEvent event = trace.events[i];
    if (event.action != Action::kAlloc && !facts.ends_block(event)) continue;
    const auto found = accounts.find(event.address);
    if (found == accounts.end()) continue;
    Account& account = found->second;
    account.balance += event.action == Action::kAlloc ? -1 : 1;
    if (event.action == Action::kAlloc || account.first_freed) continue;
    account.first_freed = EarlierBlock{.address = event.address,
                                       .requested_bytes = event.size_bytes,
                                       .free_event = i,
                                       .stream = event.stream,
                                       .pool = facts.pool_of(trace, event)};
  }
  for (const auto& [address, account] : accounts) {
    if (account.balance == 0) live->erase(address);
    if (account.balance == 1 && account.first_freed)
      live->try_emplace(address, *account.first_freed);
  }
}

}  // namespace

bool TraceFacts::ends_block(const AllocatorEvent& event) const {
  return event.action == Action::kFreeCompleted ||
         (event.action == Action::kFreeRequested && !records_completions);
}

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
  Blocks live;
  absl::flat_hash_set<uint64_t> doubtful;
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
    if (facts.ends_block(event)) {
      const auto [found, is_new] = live.try_emplace(event.address);
      if (!is_new) doubtful.insert(event.address);
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
          doubtful.insert(event.address);
          continue;
        }
        last = &found->second;
      }
      last->is_pending = false;
    } else if (event.action == Action::kAlloc) {
      last = nullptr;
      if (live.erase(event.address) == 0) doubtful.insert(event.address);
    }
  }
  out.contradictions = doubtful.size();
  if (!doubtful.empty()) settle_by_counting(trace, facts, doubtful, &live);
  out.blocks.reserve(live.size());
  for (const auto& [address, block] : live) out.blocks.push_back(block);
  std::ranges::sort(out.blocks, {}, &EarlierBlock::address);
  return out;
}

}  // namespace gpumemprof

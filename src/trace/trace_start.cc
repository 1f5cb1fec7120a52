// Which blocks were live before a trace began, from what it frees and what is left at its end.
#include "trace/trace_start.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <optional>

#include "trace/address_map.h"

namespace gpumemprof {
namespace {

/// Blocks that come and go, by address.
class Blocks {
 public:
  EarlierBlock* find(uint64_t address) {
    const uint32_t* known = index_.find(address);
    return known ? &blocks_[*known] : nullptr;
  }
  /// The block there, and whether it is new; then it holds anything.
  std::pair<EarlierBlock*, bool> put(uint64_t address) {
    const auto next = unused_.empty() ? static_cast<uint32_t>(blocks_.size()) : unused_.back();
    const auto [number, is_new] = index_.try_emplace(address, next);
    if (is_new && next == blocks_.size()) {
      blocks_.emplace_back();
    } else if (is_new) {
      unused_.pop_back();
    }
    return {&blocks_[*number], is_new};
  }
  bool erase(uint64_t address) {
    uint32_t* known = index_.find(address);
    if (!known) return false;
    unused_.push_back(*known);
    index_.erase(known);
    return true;
  }
  void prefetch(uint64_t address) const { index_.prefetch(address); }
  size_t size() const { return index_.size(); }
  void reserve(size_t count) { index_.reserve(count), blocks_.reserve(count); }
  std::vector<EarlierBlock> by_address() const {
    std::vector<EarlierBlock> out;
    out.reserve(index_.size());
    index_.for_each([&](uint32_t number) { out.push_back(blocks_[number]); });
    std::ranges::sort(out, {}, &EarlierBlock::address);
    return out;
  }

 private:
  AddressMap index_;
  std::vector<EarlierBlock, LargePages<EarlierBlock>> blocks_;
  std::vector<uint32_t> unused_;
};

/// Where nothing tells of completions a request is the end of its block.
bool is_live_at_end(const AllocatorBlock& block, const TraceFacts& facts) {
  const bool requests_end = facts.records_requests && !facts.records_completions;
  return block.state == BlockState::kAllocated ||
         (block.state == BlockState::kPendingFree && !requests_end);
}

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
      if (account != accounts.end() && is_live_at_end(block, facts)) ++account->second.balance;
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
    if (account.balance != 1 || !account.first_freed) continue;
    const auto [block, is_new] = live->put(address);
    if (is_new) *block = *account.first_freed;
  }
}

}  // namespace

uint16_t TraceFacts::pool_at(const AllocatorEvent& event) const {
  const auto above = std::ranges::upper_bound(private_ranges, event.address, {}, &PoolRange::begin);
  if (above == private_ranges.begin()) return event.pool;
  const PoolRange& range = *std::prev(above);
  return event.address < range.end ? range.pool : event.pool;
}

TraceFacts trace_facts(const AllocatorTrace& trace) {
  TraceFacts facts;
  facts.allocations = trace.events.count(Action::kAlloc);
  facts.records_requests = trace.events.count(Action::kFreeRequested) != 0;
  facts.records_completions = trace.events.count(Action::kFreeCompleted) != 0;
  for (const AllocatorSegment& segment : trace.segments) {
    if (segment.pool == 0) continue;
    facts.private_ranges.push_back(
        {segment.address, segment.address + segment.size_bytes, segment.pool});
  }
  std::ranges::sort(facts.private_ranges, {}, &TraceFacts::PoolRange::begin);
  return facts;
}

TraceStart trace_start(const AllocatorTrace& trace) {
  return trace_start(trace, trace_facts(trace));
}

TraceStart trace_start(const AllocatorTrace& trace, TraceFacts facts) {
  constexpr size_t kAhead = 12;  // the table may not fit the caches
  TraceStart out;
  Blocks live;
  absl::flat_hash_set<uint64_t> doubtful;
  size_t at_end = 0;
  for (const AllocatorSegment& segment : trace.segments) at_end += segment.blocks.size();
  live.reserve(at_end);
  for (const AllocatorSegment& segment : trace.segments) {
    for (size_t i = 0; i < segment.blocks.size(); ++i) {
      if (i + kAhead < segment.blocks.size()) live.prefetch(segment.blocks[i + kAhead].address);
      const AllocatorBlock& block = segment.blocks[i];
      if (!is_live_at_end(block, facts)) continue;
      *live.put(block.address).first = {.address = block.address,
                                        .requested_bytes = block.requested_bytes,
                                        .size_bytes = block.size_bytes,
                                        .stack = block.stack,
                                        .stream = segment.stream,
                                        .pool = segment.pool,
                                        .is_pending = block.state == BlockState::kPendingFree};
    }
  }
  // Backwards: a free makes its block live before it, an allocation ends what is known of it.
  out.most_live = live.size();
  EarlierBlock* last = nullptr;  // a request stands right before its completion, nearly always
  for (size_t i = trace.events.size(); i-- > 0;) {
    if (i >= kAhead) live.prefetch(trace.events[i - kAhead].address);
    const AllocatorEvent event = trace.events[i];
    if (facts.ends_block(event)) {
      const auto [block, is_new] = live.put(event.address);
      if (!is_new) doubtful.insert(event.address);
      out.most_live = std::max(out.most_live, live.size());
      last = block;
      *last = {.address = event.address,
               .requested_bytes = event.size_bytes,
               .free_event = i,
               .stream = event.stream,
               .pool = facts.pool_of(trace, event),
               .is_pending = facts.records_requests && facts.records_completions};
    } else if (event.action == Action::kFreeRequested) {
      if (last == nullptr || last->address != event.address) {
        last = live.find(event.address);
        if (last == nullptr) {
          doubtful.insert(event.address);
          continue;
        }
      }
      last->is_pending = false;
    } else if (event.action == Action::kAlloc) {
      last = nullptr;
      if (!live.erase(event.address)) doubtful.insert(event.address);
    }
  }
  out.contradictions = doubtful.size();
  if (!doubtful.empty()) settle_by_counting(trace, facts, doubtful, &live);
  out.blocks = live.by_address();
  out.facts = std::move(facts);
  return out;
}

}  // namespace gpumemprof

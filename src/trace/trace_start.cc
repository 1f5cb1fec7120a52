// Which blocks were live before a trace began, from what it frees and what is left at its end.
#include "trace/trace_start.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <bit>

namespace gpumemprof {
namespace {

/// Where a live block is known from: its place in the final segments, or the event that ends it.
struct Witness {
  uint64_t index = 0;             // of the block in its segment, or of the event
  uint32_t segment = kOfAnEvent;  // index in the trace
  bool is_pending = false;        // as EarlierBlock has it
  static constexpr uint32_t kOfAnEvent = UINT32_MAX;
};
static_assert(sizeof(Witness) == 16);

/// Blocks that begin and end, by address, numbered.
class Blocks {
 public:
  std::optional<uint32_t> find(uint64_t address) const {
    const uint32_t* known = index_.find(key(address));
    return known ? std::optional(*known) : std::nullopt;
  }
  /// The number of the block there, and whether it is new.
  std::pair<uint32_t, bool> put(uint64_t address, const Witness& witness) {
    const auto next = unused_.empty() ? static_cast<uint32_t>(witnesses_.size()) : unused_.back();
    const auto [number, is_new] = index_.try_emplace(key(address), next);
    if (is_new && next == witnesses_.size()) {
      witnesses_.emplace_back();
    } else if (is_new) {
      unused_.pop_back();
    }
    witnesses_[*number] = witness;
    return {*number, is_new};
  }
  std::optional<uint32_t> erase(uint64_t address) {
    uint32_t* known = index_.find(key(address));
    if (!known) return std::nullopt;
    const uint32_t number = *known;
    unused_.push_back(number);
    index_.erase(known);
    return number;
  }
  void is_not_pending(uint32_t number) { witnesses_[number].is_pending = false; }
  void prefetch(uint64_t address) const { index_.prefetch(key(address)); }
  void reserve(size_t count) {
    index_.reserve(count), witnesses_.reserve(count), unused_.reserve(count);
  }
  uint32_t number_count() const { return static_cast<uint32_t>(witnesses_.size()); }

  std::vector<EarlierBlock> by_address(const AllocatorTrace& trace, const TraceFacts& facts) const {
    std::vector<EarlierBlock> out;
    out.reserve(index_.size());
    index_.for_each([&](uint64_t, uint32_t number) {
      out.push_back(block_of(trace, facts, witnesses_[number]));
      out.back().number = number;
    });
    std::ranges::sort(out, {}, &EarlierBlock::address);
    return out;
  }

 private:
  /// Blocks begin at multiples of 512 bytes: those that lie beside each other are neighbours in the
  /// index. Any address has a key of its own.
  static uint64_t key(uint64_t address) { return std::rotr(address, 9); }
  static EarlierBlock block_of(const AllocatorTrace& trace, const TraceFacts& facts,
                               const Witness& witness) {
    if (witness.segment == Witness::kOfAnEvent) {
      const AllocatorEvent event = trace.events[witness.index];
      return {.address = event.address,
              .requested_bytes = event.size_bytes,
              .free_event = witness.index,
              .stream = event.stream,
              .pool = facts.pool_of(trace, event),
              .is_pending = witness.is_pending};
    }
    const AllocatorSegment& segment = trace.segments[witness.segment];
    const AllocatorBlock& block = segment.blocks[witness.index];
    return {.address = block.address,
            .requested_bytes = block.requested_bytes,
            .size_bytes = block.size_bytes,
            .stack = block.stack,
            .stream = segment.stream,
            .pool = segment.pool,
            .is_pending = witness.is_pending};
  }

  AddressMap index_;
  std::vector<Witness, LargePages<Witness>> witnesses_;  // by number
  std::vector<uint32_t, LargePages<uint32_t>> unused_;
};

bool has_waiting_block(const AllocatorSegment& segment) {
  return std::ranges::find(segment.blocks, BlockState::kPendingFree, &AllocatorBlock::state) !=
         segment.blocks.end();
}

/// Without completions a request ends its block.
bool is_live_at_end(const AllocatorBlock& block, const TraceFacts& facts) {
  const bool requests_end = facts.records_requests && !facts.records_completions;
  return block.state == BlockState::kAllocated ||
         (block.state == BlockState::kPendingFree && !requests_end);
}

/// All that a trace says of one address if it contradicts itself.
struct Account {
  int64_t balance = 0;  ///< blocks there at the end and frees, less allocations
  std::optional<uint64_t> first_freed;  ///< by this event
};

/// If an address is allocated or freed twice in a row some event is wrong, and reading backwards
/// alone might believe the wrong one. The count is right even if two events were exchanged: what
/// was freed or is left, and was not allocated, was live before.
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
    if (event.action != Action::kAlloc && !account.first_freed) account.first_freed = i;
  }
  for (const auto& [address, account] : accounts) {
    if (account.balance == 0) live->erase(address);
    if (account.balance != 1 || !account.first_freed || live->find(address)) continue;
    live->put(address, {.index = *account.first_freed});
  }
}

/// One for each address.
void number_addresses(const AllocatorTrace& trace, TraceStart* start) {
  const auto number = [&](uint64_t address) {
    const auto known = start->by_address.try_emplace(address, start->number_count);
    start->number_count += known.is_new;
    return *known.number;
  };
  start->number_count = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const AllocatorEvent event = trace.events[i];
    if (event.action == Action::kAlloc || is_free(event.action))
      start->numbers[i] = number(event.address);
  }
  for (EarlierBlock& block : start->blocks) block.number = number(block.address);
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
  facts.records_completions = trace.events.count(Action::kFreeCompleted) != 0 ||
                              std::ranges::any_of(trace.segments, has_waiting_block);
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

std::optional<uint32_t> TraceStart::number_of(uint64_t address) const {
  const uint32_t* known = by_address.find(address);
  return known ? std::optional(*known) : std::nullopt;
}

TraceStart trace_start(const AllocatorTrace& trace, TraceFacts facts) {
  constexpr size_t kAhead = 12;  // the table may not fit the caches
  TraceStart out;
  Blocks live;
  absl::flat_hash_set<uint64_t> doubtful;
  size_t at_end = 0;
  for (const AllocatorSegment& segment : trace.segments) at_end += segment.blocks.size();
  live.reserve(at_end);
  for (uint32_t s = 0; s < trace.segments.size(); ++s) {
    const std::vector<AllocatorBlock>& blocks = trace.segments[s].blocks;
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i + kAhead < blocks.size()) live.prefetch(blocks[i + kAhead].address);
      if (!is_live_at_end(blocks[i], facts)) continue;
      const bool is_pending = blocks[i].state == BlockState::kPendingFree;
      live.put(blocks[i].address, {.index = i, .segment = s, .is_pending = is_pending});
    }
  }
  // Backwards: before its free a block is live, before its allocation nothing is known of it.
  out.numbers.resize(trace.events.size(), TraceStart::kNoNumber);
  uint64_t last_address = 0;  // a request stands right before its completion, nearly always
  uint32_t last = TraceStart::kNoNumber;
  for (size_t i = trace.events.size(); i-- > 0;) {
    if (i >= kAhead) live.prefetch(trace.events[i - kAhead].address);
    const AllocatorEvent event = trace.events[i];
    if (facts.ends_block(event)) {
      const bool was_pending = facts.records_requests && facts.records_completions;
      const auto [number, is_new] =
          live.put(event.address, {.index = i, .is_pending = was_pending});
      if (!is_new) doubtful.insert(event.address);
      last = out.numbers[i] = number, last_address = event.address;
    } else if (event.action == Action::kFreeRequested) {
      if (last == TraceStart::kNoNumber || last_address != event.address) {
        last = live.find(event.address).value_or(TraceStart::kNoNumber);
        last_address = event.address;
        if (last == TraceStart::kNoNumber) {
          doubtful.insert(event.address);
          continue;
        }
      }
      out.numbers[i] = last;
      live.is_not_pending(last);
    } else if (event.action == Action::kAlloc) {
      last = TraceStart::kNoNumber;
      if (const auto ended = live.erase(event.address)) {
        out.numbers[i] = *ended;
      } else {
        doubtful.insert(event.address);
      }
    }
  }
  out.contradictions = doubtful.size();
  if (!doubtful.empty()) settle_by_counting(trace, facts, doubtful, &live);
  out.blocks = live.by_address(trace, facts);
  out.number_count = live.number_count();
  if (!doubtful.empty()) number_addresses(trace, &out);
  out.facts = std::move(facts);
  return out;
}

}  // namespace gpumemprof

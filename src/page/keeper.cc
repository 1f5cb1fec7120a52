#include "page/keeper.h"

#include <algorithm>

#include "analysis/categories/snapshot_rules.h"
#include "trace/allocator_trace.h"
#include "trace/live_state.h"
#include "trace/trace_start.h"

namespace gpumemprof {
namespace {

/// Of a sparse column what goes with event `i`; `next` is where the last call stopped.
template <class Sparse>
const Sparse* beside(const std::vector<Sparse>& all, size_t* next, size_t i) {
  while (*next < all.size() && all[*next].event < i) ++*next;
  return *next < all.size() && all[*next].event == i ? &all[*next] : nullptr;
}

}  // namespace

void TableFiller::open() {
  if (!table.changes.empty()) return;
  table.kinds.resize(1);
  table.earlier_blocks = table.blocks();
  table.earlier_bytes = live_bytes_;
  table.changes.push_back(0);
  table.levels.add(live_bytes_);
}

uint32_t TableFiller::add_block(uint64_t address, uint64_t size_bytes, uint32_t start,
                                uint32_t stack, uint32_t thread) {
  const uint32_t block = table.blocks();
  table.size_bytes.push_back(size_bytes), table.address.push_back(address);
  table.start.push_back(start), table.end.push_back(kNone);
  table.stack.push_back(stack);
  if (!table.kind.empty()) table.kind.push_back(0);
  if (trace_ == nullptr) table.thread.push_back(thread);
  if (!table.streams.empty()) table.stream.push_back(0);
  live_bytes_ += size_bytes;
  return block;
}

void TableFiller::adopt(const LiveState& before, uint16_t device) {
  const DeviceState& state = before.devices()[device];
  allocations_before_ = state.actions[static_cast<size_t>(Action::kAlloc)];
  std::vector<std::pair<uint64_t, uint32_t>> blocks;
  state.blocks.each_number(
      [&](uint64_t address, uint32_t number) { blocks.push_back({address, number}); });
  std::ranges::sort(blocks);
  for (const auto& [address, number] : blocks) {
    const LiveBlock& block = *state.blocks.find(address);
    live_at(number) = {block.size_bytes,
                       add_block(address, block.size_bytes, 0, block.stack, block.thread)};
  }
  open();
}

void TableFiller::adopt(const AllocatorTrace& trace, const TraceStart& start) {
  trace_ = &trace;
  const size_t blocks = start.blocks.size() + trace.events.count(Action::kAlloc);
  table.end.reserve(blocks), table.stream.reserve(blocks);
  table.changes.reserve(trace.events.size() + 1);
  table.streams = trace.streams;
  if (table.streams.empty()) table.streams.push_back(0);
  live_.assign(start.number_count, {});
  for (const EarlierBlock& earlier : start.blocks) {
    // Like in LiveState: a block that a contradictory trace names twice exists once.
    Live& live = live_at(earlier.number);
    const bool is_new = live.block == kNone;
    const uint32_t block = add_block(earlier.address, is_new ? earlier.requested_bytes : 0, 0,
                                     earlier.stack, UINT32_MAX);
    table.stream[block] = earlier.stream;
    if (is_new) live = {earlier.requested_bytes, block};
    if (!is_new) table.end[block] = 0;
  }
  open();
}

uint32_t TableFiller::block_of(uint32_t number) const {
  return number < live_.size() ? live_[number].block : kNone;
}

TableFiller::Live& TableFiller::live_at(uint32_t number) {
  if (number >= live_.size()) live_.resize(size_t{number} + 1);
  return live_[number];
}

void TableFiller::take(const EventBatch& batch, size_t i, const Beside& beside) {
  open();
  const uint32_t moment = table.moments();
  if (moment >= BlockTable::kMostMoments || table.blocks() >= BlockTable::kMostBlocks) {
    ++table.left_out_events;
    return;
  }
  own_events_.push_back(static_cast<uint32_t>(i));
  table.times.push_back(batch.time_ns[i]);
  table.changes.push_back(0);
  const Action action = batch.action[i];
  const bool ends = action == Action::kFreeCompleted ||
                    (action == Action::kFreeRequested && !batch.frees_in_two_steps);
  if (!(ends && just_requested_)) end_requested();
  if (action == Action::kAlloc) {
    allocate(batch, i, moment, beside.detail);
    if (beside.requested) add_rounding(table.blocks() - 1, beside.requested->bytes, moment);
  } else if (ends) {
    free(batch, i, moment);
  } else if (action == Action::kFreeRequested) {
    if (const Live* live = live_of(batch, i)) {
      table.changes[moment] =
          static_cast<uint32_t>(BlockChange::kFreeRequested) << 30 | live->block;
      just_requested_ = {live->block, moment};
    }
  } else {
    take_other(batch, i, moment, beside.detail);
  }
  if (beside.totals) {
    if (!has_totals_) table.reserved = {};
    has_totals_ = true;
    table.reserved.add(moment, beside.totals->reserved_bytes);
  }
  table.levels.add(live_bytes_);
}

void TableFiller::take_other(const EventBatch& batch, size_t i, uint32_t moment,
                             const AllocatorDetail* detail) {
  const uint64_t size = batch.size_bytes[i];
  const Action action = batch.action[i];
  if (action == Action::kOom) {
    table.refused.push_back({moment, batch.stack[i], size});
    return;
  }
  const bool grows = action == Action::kSegmentAlloc || action == Action::kSegmentMap;
  if (!grows && action != Action::kSegmentFree && action != Action::kSegmentUnmap) return;
  SegmentChange change{moment, batch.stack[i], action, batch.address[i], size};
  if (trace_) {
    const AllocatorEvent event = trace_->events[batch.first_event + i];
    if (event.stream < trace_->streams.size()) change.stream = trace_->streams[event.stream];
    if (event.pool < trace_->pools.size()) change.pool = trace_->pools[event.pool];
  } else if (detail) {
    change.stream = detail->stream, change.pool = detail->pool;
  }
  table.segments.push_back(change);
  reserved_bytes_ += grows ? size : 0 - size;
  if (!has_totals_) table.reserved.add(moment, reserved_bytes_);
}

void TableFiller::allocate(const EventBatch& batch, size_t i, uint32_t moment,
                           const AllocatorDetail* detail) {
  const uint32_t block =
      add_block(batch.address[i], batch.size_bytes[i], moment, batch.stack[i], batch.thread[i]);
  table.changes[moment] = static_cast<uint32_t>(BlockChange::kAlloc) << 30 | block;
  Live& live = live_at(batch.block[i]);
  if (live.block != kNone) {  // its free was missed
    ++table.repeated_allocs;
    live_bytes_ -= live.size_bytes;
    table.end[live.block] = moment;
    table.replaced.push_back({moment, live.block});
    end_waiting(live.block, moment);
    end_rounding(live.block, moment);
  }
  live = {batch.size_bytes[i], block};
  if (trace_) {
    table.stream[block] = trace_->events[batch.first_event + i].stream;
  } else if (!batch.stream.empty()) {
    set_stream(block, batch.stream[i]);
  } else if (detail) {
    set_stream(block, detail->stream);
  }
}

void TableFiller::set_stream(uint32_t block, int64_t stream) {
  if (table.streams.empty()) {
    table.streams.push_back(0);
    table.stream.resize(table.blocks(), 0);
  }
  auto known = std::ranges::find(table.streams, stream);
  if (known == table.streams.end()) {
    if (table.streams.size() > UINT16_MAX) return;
    known = table.streams.insert(known, stream);
  }
  table.stream[block] = static_cast<uint16_t>(known - table.streams.begin());
}

void TableFiller::free(const EventBatch& batch, size_t i, uint32_t moment) {
  const Live* live = live_of(batch, i);
  if (live == nullptr) {
    end_requested();
    ++table.unmatched_frees;
    return;
  }
  const auto [size_bytes, block] = *live;
  // Requested and completed with the next event: it waited for nothing.
  if (just_requested_ && just_requested_->block == block)
    just_requested_.reset();
  else
    end_requested();
  end_waiting(block, moment);
  end_rounding(block, moment);
  table.changes[moment] = static_cast<uint32_t>(BlockChange::kFree) << 30 | block;
  table.end[block] = moment;
  live_bytes_ -= size_bytes;
  live_[batch.block[i]].block = kNone;
}

/// A requested free that the next event does not complete waits.
void TableFiller::end_requested() {
  if (!just_requested_) return;
  const auto [block, moment] = *just_requested_;
  just_requested_.reset();
  if (!waiting_.try_emplace(block, moment).second) return;
  waiting_bytes_ += table.size_bytes[block];
  table.pending.add(moment, waiting_bytes_);
}

void TableFiller::end_waiting(uint32_t block, uint32_t moment) {
  if (waiting_.empty()) return;
  const auto waited = waiting_.find(block);
  if (waited == waiting_.end()) return;
  table.waits.push_back({block, waited->second, moment});
  waiting_.erase(waited);
  waiting_bytes_ -= table.size_bytes[block];
  table.pending.add(moment, waiting_bytes_);
}

void TableFiller::add_rounding(uint32_t block, uint64_t requested_bytes, uint32_t moment) {
  const uint64_t size = table.size_bytes[block];
  if (requested_bytes >= size) return;
  rounding_[block] = size - requested_bytes;
  rounding_bytes_ += size - requested_bytes;
  table.rounding.add(moment, rounding_bytes_);
}

void TableFiller::end_rounding(uint32_t block, uint32_t moment) {
  if (rounding_.empty()) return;
  const auto known = rounding_.find(block);
  if (known == rounding_.end()) return;
  rounding_bytes_ -= known->second;
  rounding_.erase(known);
  table.rounding.add(moment, rounding_bytes_);
}

uint32_t TableFiller::kind_of(const CategoryHolder& what) {
  const uint64_t packed = static_cast<uint64_t>(what.category) << 24 |
                          static_cast<uint64_t>(what.why) << 16 | uint64_t{what.rule} << 8 |
                          static_cast<uint64_t>(what.phase);
  const auto [known, is_new] = kinds_.try_emplace(std::pair(packed, uint64_t{what.name}),
                                                  static_cast<uint32_t>(table.kinds.size()));
  if (is_new) {
    table.kinds.push_back(what);
    table.kinds.back().stack = 0, table.kinds.back().bytes = table.kinds.back().count = 0;
  }
  return known->second;
}

void TableFiller::tell(uint32_t block, const CategoryHolder& what, uint64_t until) {
  open();
  is_told = true;
  told_.push_back({until, block, kind_of(what)});
}

/// A fact given within a batch holds until one of its events.
void TableFiller::take_told(const EventBatch* batch) {
  if (!told_.empty()) table.kind.resize(table.blocks(), 0);
  for (const Told& told : told_) {
    if (told.block >= table.blocks()) continue;
    uint32_t& kind = table.kind[told.block];
    if (told.until == BlockKeeper::kToItsEnd || batch == nullptr) {
      kind = (kind & BlockTable::kChangesKind) | told.kind;
      continue;
    }
    const uint64_t limit = told.until - std::min(told.until, batch->first_event);
    const auto own = std::ranges::lower_bound(own_events_, limit) - own_events_.begin();
    table.earlier_kinds.push_back(
        {told.block, moments_before_batch_ + static_cast<uint32_t>(own), told.kind});
    kind |= BlockTable::kChangesKind;
  }
  told_.clear();
}

void TableFiller::end_batch(const EventBatch& batch) {
  take_told(&batch);
  own_events_.clear();
  moments_before_batch_ = std::max(1u, table.moments());
}

void TableFiller::tell_rules(const std::vector<RuledBlock>& allocated,
                             const std::vector<RuledBlock>& earlier) {
  if (allocated.empty() && earlier.empty()) return;
  open();
  is_told = true;
  table.kind.resize(table.blocks(), 0);
  const auto set = [&](size_t block, const RuledBlock& ruled) {
    if (block >= table.blocks()) return;
    const auto rule = static_cast<SnapshotRule>(ruled.rule);
    table.kind[block] =
        kind_of({.category = facts_of(rule).category, .rule = ruled.rule, .phase = ruled.phase});
  };
  for (size_t i = 0; i < std::min<size_t>(earlier.size(), table.earlier_blocks); ++i)
    set(i, earlier[i]);
  for (size_t i = 0; i < allocated.size(); ++i) set(table.earlier_blocks + i, allocated[i]);
}

void TableFiller::finish() {
  open();
  end_requested();
  take_told(nullptr);
  for (const auto& [block, since] : waiting_) table.waits.push_back({block, since, kNone});
  if (trace_) take_end();
  for (size_t i = 0; i < table.stream.size() && i < table.blocks(); ++i) {
    if (table.stream[i] >= table.streams.size()) table.stream[i] = 0;
  }
  table.finish();
  const bool is_below_live = trace_ && !table.reserved.empty() &&
                             table.reserved.at(table.peak) < table.level_at(table.peak);
  if (is_below_live) table.reserved = {};  // the events contradict the segments
  trace_ = nullptr;
}

/// What a snapshot lists at the end, walked backwards.
void TableFiller::take_end() {
  table.has_end_segments = true;
  uint64_t end_bytes = 0;
  for (const AllocatorSegment& segment : trace_->segments) {
    end_bytes += segment.size_bytes;
    const Action action = segment.is_expandable ? Action::kSegmentMap : Action::kSegmentAlloc;
    SegmentChange listed{0, segment.stack, action, segment.address, segment.size_bytes};
    if (segment.stream < trace_->streams.size()) listed.stream = trace_->streams[segment.stream];
    if (segment.pool < trace_->pools.size()) listed.pool = trace_->pools[segment.pool];
    table.end_segments.push_back(listed);
  }
  const uint64_t before = end_bytes - reserved_bytes_;
  if (table.reserved.empty() || table.reserved.moments.front() != 0) {
    table.reserved.moments.insert(table.reserved.moments.begin(), 0);
    table.reserved.values.insert(table.reserved.values.begin(), 0);
  }
  bool is_possible = true;
  for (uint64_t& bytes : table.reserved.values) {
    bytes += before;
    is_possible &= bytes <= INT64_MAX;
  }
  if (!is_possible) table.reserved = {};
}

TableFiller& Keeper::filler(uint16_t device) {
  if (device >= devices_.size()) devices_.resize(size_t{device} + 1);
  if (!devices_[device]) devices_[device] = std::make_unique<TableFiller>();
  return *devices_[device];
}

void Keeper::begin(const LiveState* before) {
  devices_.clear();
  for (size_t d = 0; before && d < before->devices().size(); ++d)
    filler(static_cast<uint16_t>(d)).adopt(*before, static_cast<uint16_t>(d));
}

void Keeper::begin_trace(uint16_t device, const AllocatorTrace& trace, const TraceStart& start) {
  filler(device).adopt(trace, start);
}

void Keeper::take(EventBatch& batch) {
  constexpr size_t kNear = 12, kFar = 24;  // events: their rows are in the cache then
  size_t detail = 0, total = 0, request = 0;
  for (size_t i = 0; i < batch.size(); ++i) {
    TableFiller& of = filler(batch.device[i]);
    if (i + kFar < batch.size()) of.expect(batch, i + kNear, i + kFar);
    of.take(batch, i,
            {.detail = beside(batch.details, &detail, i),
             .totals = beside(batch.totals, &total, i),
             .requested = beside(batch.requested, &request, i)});
  }
  for (const auto& device : devices_) {
    if (device) device->end_batch(batch);
  }
}

uint32_t Keeper::made_by(uint16_t device, uint64_t number) const {
  const bool is_known = device < devices_.size() && devices_[device];
  return is_known ? devices_[device]->made_by(number) : static_cast<uint32_t>(number);
}

uint32_t Keeper::block_of(uint16_t device, uint32_t number) const {
  const bool is_known = device < devices_.size() && devices_[device];
  return is_known ? devices_[device]->block_of(number) : kNone;
}

void Keeper::tell(uint16_t device, uint32_t block, const CategoryHolder& what, uint64_t until) {
  filler(device).tell(block, what, until);
}

void Keeper::tell_rules(uint16_t device, const std::vector<RuledBlock>& allocated,
                        const std::vector<RuledBlock>& earlier) {
  filler(device).tell_rules(allocated, earlier);
}

std::vector<std::unique_ptr<BlockTable>> Keeper::finish() {
  std::vector<std::unique_ptr<BlockTable>> tables;
  for (const auto& device : devices_) {
    tables.push_back(nullptr);
    if (!device) continue;
    device->finish();
    tables.back() = std::make_unique<BlockTable>(std::move(device->table));
    tables.back()->is_told = device->is_told;
  }
  devices_.clear();
  return tables;
}

}  // namespace gpumemprof

#include "allocator/replay.h"

#include <algorithm>
#include <utility>

#include "allocator/initial_state.h"
#include "allocator/look_ahead.h"
#include "allocator/simulator_state.h"
#include "allocator/step_limit.h"

namespace gpumemprof {
namespace {

using Call = DriverCall::Kind;

/// A segment_alloc or segment_map that was recorded since the last allocation.
struct RecordedCall {
  uint64_t event;
  uint64_t address;
  uint64_t size_bytes;
  bool is_map;
  bool taken = false;
};

/// The driver of the recorded run: new segments lie where it put them then.
class RecordedAddresses : public AddressSource {
 public:
  explicit RecordedAddresses(std::vector<RecordedCall>* calls) : calls_(calls) {}
  uint64_t place_segment(uint64_t size_bytes) override {
    for (RecordedCall& call : *calls_) {
      if (call.is_map || call.taken || call.size_bytes != size_bytes) continue;
      call.taken = true;
      return call.address;
    }
    return nowhere(size_bytes);
  }
  uint64_t place_range(uint64_t size_bytes) override {
    for (RecordedCall& call : *calls_) {
      if (!call.is_map || call.taken) continue;
      call.taken = true;
      return call.address;
    }
    return nowhere(size_bytes);
  }

 private:
  /// Above everything that a record can name.
  uint64_t nowhere(uint64_t size_bytes) {
    const uint64_t address = nowhere_;
    nowhere_ += round_up_to(size_bytes, kDriverPageBytes) + kDriverPageBytes;
    return address;
  }
  std::vector<RecordedCall>* calls_;
  uint64_t nowhere_ = 1ull << 62;
};

class Replay {
 public:
  Replay(const AllocatorTrace& trace, const TraceStart& start, const AllocatorConfig& config,
         const Release& release, const InitialState& initial)
      : trace_(trace),
        start_(start),
        facts_(start.facts),
        addresses_(&recorded_),
        simulator_(config, release, &addresses_),
        live_(start.number_count) {
    result_.release = release;
    result_.impossible_events = initial.impossible_blocks;
    state().blocks.reserve(2 * live_.size());  // with the free ones between them
    for (const EarlierSegment& earlier : initial.segments) {
      state().seed(earlier.segment, earlier.pieces);
    }
    find_earlier_blocks();
    simulator_.keep_driver_calls(true);
    simulator_.limit_steps(step_limit(trace.events.size()));
  }

  ReplayResult run(const ReplayObserver* observer) {
    result_.start = figures();
    note_peaks(std::nullopt);
    if (observer != nullptr && !(*observer)(kBeforeFirstEvent, simulator_)) {
      result_.stopped = true;
    }
    const LookAhead look_ahead(start_, live_, state());
    for (uint64_t i = 0; i < trace_.events.size() && !result_.stopped; ++i) {
      look_ahead.before(i);
      step(i, trace_.events[i]);
      if (observer != nullptr && !(*observer)(i, simulator_)) result_.stopped = true;
    }
    result_.end = figures();
    if (!result_.stopped) compare_end();
    return std::move(result_);
  }

 private:
  Simulator::State& state() { return simulator_.state(); }

  /// Both they and the simulator's, as they were seeded, are in the order of their addresses.
  void find_earlier_blocks() {
    auto earlier = start_.blocks.begin();
    for (BlockId id = 1; id < state().blocks.size(); ++id) {
      const SimulatedBlock& block = state().blocks[id];
      const bool is_live = block.state == SimulatedBlock::State::kAllocated ||
                           block.state == SimulatedBlock::State::kPendingFree;
      if (!is_live) continue;
      while (earlier->address != block.address) ++earlier;
      live_[earlier->number] = id;
    }
  }

  MemoryFigures figures() const {
    const AllocatorStatistics& now = simulator_.statistics();
    return {now.allocated.current, now.active.current, now.requested.current, now.reserved.current,
            now.releasable.current};
  }

  static void note_peak(EventPeak* peak, uint64_t bytes, std::optional<uint64_t> event) {
    if (bytes <= peak->bytes) return;
    *peak = {bytes, event};
  }
  void note_peaks(std::optional<uint64_t> event) {
    const AllocatorStatistics& now = simulator_.statistics();
    note_peak(&result_.peak_allocated, now.allocated.current, event);
    note_peak(&result_.peak_active, now.active.current, event);
    note_peak(&result_.peak_requested, now.requested.current, event);
    if (now.reserved.current > result_.peak_reserved.bytes) {
      // The record has the driver's call before the allocation that needed it.
      const bool grew = event.has_value() && !recorded_.empty();
      note_peak(&result_.peak_reserved, now.reserved.current,
                grew ? recorded_.back().event : event);
    }
  }

  void step(uint64_t index, const AllocatorEvent& event) {
    switch (event.action) {
      case Action::kAlloc:
        allocate(index, event);
        break;
      case Action::kFreeRequested:
        free_requested(index);
        break;
      case Action::kFreeCompleted:
        free_completed(index);
        break;
      case Action::kSegmentAlloc:
      case Action::kSegmentMap:
        ++result_.segment_events;
        recorded_.push_back(
            {index, event.address, event.size_bytes, event.action == Action::kSegmentMap});
        break;
      case Action::kSegmentFree:
        note_release(index, event);
        if (!state().release_recorded(event.address, event.size_bytes)) {
          mismatch(index, "the recording releases a segment that is not wholly free in the replay");
        }
        break;
      case Action::kSegmentUnmap:
        note_release(index, event);
        if (!state().unmap_recorded(event.address, event.size_bytes)) {
          mismatch(index, "the recording unmaps pages that are not free in the replay");
        }
        break;
      case Action::kOom:
        refused(index);
        break;
      case Action::kSnapshot:
        break;
    }
    state().calls.clear();
  }

  void mismatch(uint64_t index, std::string reason) {
    if (result_.first_mismatch_event) return;
    result_.first_mismatch_event = index;
    result_.mismatch_reason = std::move(reason);
  }

  void allocate(uint64_t index, const AllocatorEvent& event) {
    ++result_.alloc_addresses;
    Simulator::Request request{event.size_bytes, event.stream, facts_.pool_of(trace_, event),
                               event.stack};
    if (after_release_) [[unlikely]]
      request.tries_again = tries_again(event, request);
    const BlockId id = simulator_.malloc(request);
    if (simulator_.gave_up()) [[unlikely]]
      return give_up(index);
    const uint64_t address = simulator_.block(id).address;
    BlockId& known = block_of(index);
    const bool is_new = known == kNoBlock;
    if (is_new) known = id;
    if (id != kNoBlock && address == event.address && is_new) [[likely]] {
      ++result_.matched;
      if (!recorded_.empty() || !state().calls.empty()) compare_calls(index);
    } else if (!is_new) {
      ++result_.impossible_events;
      mismatch(index,
               "the recording places a block at " + hex(event.address) + ", where one is live");
      // It may be freed where the replay has it: so it is when two addresses were exchanged.
      const auto there = start_.number_of(address);
      if (there && live_[*there] == kNoBlock) live_[*there] = id;
    } else {
      mismatch(index, reason(id, event));
      known = move_to_record(id, event, request);
    }
    note_peaks(index);
    recorded_.clear();
  }

  void note_release(uint64_t index, const AllocatorEvent& event) {
    // A first try may have mapped a part of what it needs before the device was full.
    if (!recorded_.empty()) [[unlikely]]
      refused(index);
    after_release_ = true;
    release_stack_ = event.stack;
  }

  /// Memory went back right before this allocation: within it, after its first try had failed, or
  /// because the program emptied the cache. Stacks tell, where there are any; else it is the one
  /// of the two that explains the address.
  bool tries_again(const AllocatorEvent& event, const Simulator::Request& request) {
    after_release_ = false;
    const bool is_another =
        event.stack != 0 && release_stack_ != 0 && event.stack != release_stack_;
    return !is_another && state().only_a_retry_takes(event.address, request);
  }

  void give_up(uint64_t index) {
    mismatch(index, "the replay takes too many steps from here on");
    result_.gave_up = result_.stopped = true;
    result_.alloc_addresses = facts_.allocations;
  }

  std::string reason(BlockId id, const AllocatorEvent& event) {
    if (id == kNoBlock) return "the replay has no memory left where the recording has";
    const bool new_here = !state().calls.empty();
    if (new_here && recorded_.empty()) {
      return "the replay needs a new segment where the recording reuses a free block";
    }
    if (!new_here && !recorded_.empty()) {
      return "the replay reuses a free block where the recording needs a new segment";
    }
    const uint64_t chosen = simulator_.block(id).address;
    return "the replay places " + std::to_string(event.size_bytes) + " bytes at " + hex(chosen) +
           ", the recording has them at " + hex(event.address);
  }
  static std::string hex(uint64_t value) {
    char text[20];
    snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
  }

  void compare_calls(uint64_t index) {
    const auto& calls = state().calls;
    for (size_t i = 0; i < std::min(calls.size(), recorded_.size()); ++i) {
      const Call kind = recorded_[i].is_map ? Call::kMap : Call::kSegmentAlloc;
      result_.segment_events_matched += calls[i].kind == kind &&
                                        calls[i].address == recorded_[i].address &&
                                        calls[i].size_bytes == recorded_[i].size_bytes;
    }
    if (calls.size() != recorded_.size()) {
      mismatch(index, "the replay makes " + std::to_string(calls.size()) +
                          " driver calls where the recording has " +
                          std::to_string(recorded_.size()));
    }
  }

  /// After a wrong guess: the block goes where the record has it, so that the next guess starts
  /// from the truth. Where that place is not free the guess stays.
  BlockId move_to_record(BlockId id, const AllocatorEvent& event,
                         const Simulator::Request& request) {
    if (id != kNoBlock) {
      simulator_.free_completed(id);
      for (const DriverCall& call : std::vector(state().calls)) {
        if (call.kind == Call::kSegmentAlloc)
          state().release_recorded(call.address, call.size_bytes);
      }
    }
    for (const RecordedCall& call : recorded_) {
      if (call.is_map) {
        state().map_recorded(call.address, call.size_bytes);
      } else if (!state().segment_at(call.address)) {
        const SeedBlock whole{call.address, call.size_bytes, 0, 0, SimulatedBlock::State::kFree};
        state().seed({.address = call.address,
                      .size_bytes = call.size_bytes,
                      .stack = request.stack,
                      .stream = request.stream,
                      .pool = request.pool,
                      .is_large = call.size_bytes != kDriverPageBytes},
                     {&whole, 1});
      }
    }
    const BlockId there = state().malloc_at(event.address, request);
    return there != kNoBlock || id == kNoBlock ? there : simulator_.malloc(request);
  }

  /// What an event's block is here; kNoBlock: not live.
  BlockId& block_of(uint64_t index) { return live_[start_.numbers[index]]; }

  void free_requested(uint64_t index) {
    after_release_ = false;
    if (!facts_.records_completions) return free_completed(index);
    if (block_of(index) == kNoBlock) {
      ++result_.impossible_events;
    } else {
      simulator_.free_requested(block_of(index));
    }
  }

  void free_completed(uint64_t index) {
    const BlockId ended = std::exchange(block_of(index), kNoBlock);
    if (ended != kNoBlock) {
      simulator_.free_completed(ended);
    } else if (!facts_.records_requests) {  // else its request was counted already
      ++result_.impossible_events;
    }
  }

  /// An allocation that failed, or its first try: what was mapped for it stays.
  void refused(uint64_t index) {
    for (const RecordedCall& call : recorded_) {
      const bool done = call.is_map && state().map_recorded(call.address, call.size_bytes);
      result_.segment_events_matched += done;
      if (!done)
        mismatch(index,
                 "the recording maps pages for a refused request that are not free in the replay");
    }
    note_peaks(index);
    recorded_.clear();
  }

  void compare_end() {
    const std::vector<SegmentView> views = segments(simulator_);
    result_.end_segments = views.size();
    for (const AllocatorSegment& end : trace_.segments) {
      result_.end_blocks += end.blocks.size();
      const auto view = std::ranges::lower_bound(views, end.address, {}, &SegmentView::address);
      if (view == views.end() || view->address != end.address) continue;
      size_t at = 0;
      for (const AllocatorBlock& block : end.blocks) {
        while (at < view->blocks.size() &&
               simulator_.block(view->blocks[at]).address < block.address)
          ++at;
        if (at == view->blocks.size()) break;
        const SimulatedBlock& mine = simulator_.block(view->blocks[at]);
        result_.end_blocks_matched += mine.address == block.address &&
                                      mine.size_bytes == block.size_bytes &&
                                      same_state(mine.state, block.state);
      }
    }
  }
  static bool same_state(SimulatedBlock::State mine, BlockState recorded) {
    switch (recorded) {
      case BlockState::kAllocated:
        return mine == SimulatedBlock::State::kAllocated;
      case BlockState::kPendingFree:
        return mine == SimulatedBlock::State::kPendingFree;
      case BlockState::kFree:
        return mine == SimulatedBlock::State::kFree;
    }
    return false;
  }

  const AllocatorTrace& trace_;
  const TraceStart& start_;
  const TraceFacts& facts_;
  std::vector<RecordedCall> recorded_;
  RecordedAddresses addresses_;
  Simulator simulator_;
  std::vector<BlockId> live_;   // by number of the recorded block
  bool after_release_ = false;  // with nothing but calls of the driver since
  uint32_t release_stack_ = 0;
  ReplayResult result_;
};

bool is_better(const ReplayResult& a, const ReplayResult& b) {
  const uint64_t at_a = a.first_mismatch_event.value_or(~0ull);
  const uint64_t at_b = b.first_mismatch_event.value_or(~0ull);
  return std::pair(at_a, a.matched) > std::pair(at_b, b.matched);
}

/// The recorded settings, with what follows from the device where its size is known: how much of
/// the addresses an expandable segment reserves (config.h). What the device had free is in the
/// record.
AllocatorConfig replayed_config(const AllocatorTrace& trace, const RecordedSettings& settings,
                                const Release& release) {
  AllocatorConfig config = recorded_config(settings, release);
  if (trace.device_bytes == 0) return config;
  uint64_t range = trace.device_bytes + trace.device_bytes / 8;
  if (config.reserve_share) {
    const double share = *config.reserve_share * static_cast<double>(trace.device_bytes);
    range = std::min(range, static_cast<uint64_t>(std::min(share, 0x1p60)));
  }
  config.reserve_bytes = std::min(range, config.reserve_bytes.value_or(range));
  return config;
}

ReplayResult replay(const AllocatorTrace& trace, const TraceStart& start,
                    const RecordedSettings& settings, const Release& release,
                    const ReplayObserver* observer) {
  const AllocatorConfig config = replayed_config(trace, settings, release);
  const InitialState initial = initial_state(trace, start, config, release);
  return Replay(trace, start, config, release, initial).run(observer);
}

/// Releases whose placements are the same, but for the settings that they accept.
bool same_rules(Release a, Release b) {
  a.minor = b.minor;
  a.names_pools = b.names_pools;
  return a == b;
}

}  // namespace

ReplayResult replay_recorded(const AllocatorTrace& trace, const RecordedSettings& settings,
                             const Release& release) {
  return replay(trace, trace_start(trace), settings, release, nullptr);
}

ReplayResult replay_recorded(const AllocatorTrace& trace, const TraceStart& start,
                             const RecordedSettings& settings, const Release& release,
                             ReplayObserver observer) {
  return replay(trace, start, settings, release, &observer);
}

ReplayResult replay_recorded(const AllocatorTrace& trace, const RecordedSettings& settings,
                             const Release& release, ReplayObserver observer) {
  return replay(trace, trace_start(trace), settings, release, &observer);
}

ReplayResult search_release(const std::string& writer_version_hint,
                            absl::FunctionRef<ReplayResult(const Release&)> replay,
                            absl::FunctionRef<void()> keep, std::vector<Release>* equal) {
  const std::vector<Release> possible = releases_for_hint(writer_version_hint);
  std::optional<ReplayResult> best;
  size_t first = 0;  // of those with the rules of the i-th
  for (size_t i = 0; i < possible.size(); ++i) {
    if (i + 1 < possible.size() && same_rules(possible[i], possible[i + 1])) continue;
    ReplayResult result = replay(possible[i]);
    const bool is_best = !best || is_better(result, *best);
    if (equal) {
      if (is_best) equal->clear();
      if (is_best || !is_better(*best, result))
        equal->insert(equal->end(), possible.begin() + first, possible.begin() + i + 1);
    }
    first = i + 1;
    if (!is_best) continue;
    best = std::move(result);
    keep();
    if (!best->first_mismatch_event && !equal) break;
  }
  best->release_was_searched = possible.size() > 1;
  return *std::move(best);
}

ReplayResult replay_unknown_release(const AllocatorTrace& trace, const RecordedSettings& settings,
                                    const std::string& writer_version_hint) {
  return replay_unknown_release(trace, trace_start(trace), settings, writer_version_hint);
}

ReplayResult replay_unknown_release(const AllocatorTrace& trace, const TraceStart& start,
                                    const RecordedSettings& settings,
                                    const std::string& writer_version_hint,
                                    std::vector<Release>* equal) {
  return search_release(
      writer_version_hint,
      [&](const Release& release) { return replay(trace, start, settings, release, nullptr); },
      [] {}, equal);
}

}  // namespace gpumemprof

// The requests of a trace under other settings.
#include <memory>
#include <utility>

#include "allocator/driver_addresses.h"
#include "allocator/look_ahead.h"
#include "allocator/release_cause.h"
#include "allocator/replay.h"
#include "allocator/step_limit.h"

namespace gpumemprof {
namespace {

using Blocks = decltype(Simulator::State::blocks);

class WhatIf {
 public:
  /// `judged_from`: a request before it that the recording refused is no failure here either.
  /// `room`: memory for blocks, which it gets back: that of many blocks takes long to come.
  WhatIf(const AllocatorTrace& trace, const TraceStart& start, const AllocatorConfig& config,
         const Release& release, uint64_t judged_from = 0, Blocks* room = nullptr)
      : judged_from_(judged_from),
        room_(room),
        trace_(trace),
        start_(start),
        facts_(start.facts),
        addresses_(driver_addresses(trace)),
        simulator_(config, release, addresses_.get()),
        live_(start.number_count) {
    if (room_) {
      room_->clear(), room_->resize(1);
      room_->swap(simulator_.state().blocks);
    }
    simulator_.state().blocks.reserve(2 * live_.size());  // with the free ones between them
  }

  WhatIfResult run(const ReplayObserver* observer) {
    simulator_.limit_steps(step_limit(trace_.events.size()));
    make_earlier_blocks();
    bool go_on = observer == nullptr || (*observer)(kBeforeFirstEvent, simulator_);
    const LookAhead look_ahead(start_, live_, simulator_.state());
    for (uint64_t i = 0; i < trace_.events.size() && go_on; ++i) {
      look_ahead.before(i);
      step(i, trace_.events[i]);
      if (simulator_.gave_up()) [[unlikely]] {
        result_.gave_up_at = i;
        break;
      }
      note_peak(i);
      go_on = observer == nullptr || (*observer)(i, simulator_);
    }
    const AllocatorStatistics& end = simulator_.statistics();
    result_.peak_reserved_bytes = end.reserved.peak;
    result_.peak_allocated_bytes = end.allocated.peak;
    result_.end_reserved_bytes = end.reserved.current;
    result_.segments = count_segments(simulator_);
    result_.peak_segments = end.segments.peak;
    result_.num_alloc_retries = end.num_alloc_retries;
    result_.num_ooms = end.num_ooms;
    if (room_) room_->swap(simulator_.state().blocks);
    return result_;
  }

 private:
  void make_earlier_blocks() {
    for (const EarlierBlock& block : start_.blocks) {
      const BlockId id =
          simulator_.malloc({block.requested_bytes, block.stream, block.pool, block.stack});
      if (id == kNoBlock) {
        result_.oom_before_first_event = true;
      } else {
        live_[block.number] = id;
      }
    }
    note_peak(std::nullopt);
  }

  void note_peak(std::optional<uint64_t> event) {
    const AllocatorStatistics& now = simulator_.statistics();
    if (now.reserved.peak <= peak_) return;
    peak_ = now.reserved.peak;
    result_.peak_reserved_event = event;
    result_.at_peak_reserved = {now.allocated.current, now.active.current, now.requested.current,
                                now.reserved.current, now.releasable.current};
  }

  void step(uint64_t index, const AllocatorEvent& event) {
    switch (event.action) {
      case Action::kAlloc:
        allocate(index, event);
        break;
      case Action::kFreeRequested:
        if (facts_.records_completions) {
          if (block_of(index) != kNoBlock) simulator_.free_requested(block_of(index));
          break;
        }
        [[fallthrough]];
      case Action::kFreeCompleted:
        in_release_ = false;
        if (block_of(index) == kNoBlock) break;
        simulator_.free_completed(std::exchange(block_of(index), kNoBlock));
        break;
      case Action::kSegmentFree:
      case Action::kSegmentUnmap:
        if (event.pool != 0) simulator_.release_pool(event.pool);
        if (!in_release_) give_back(index);
        in_release_ = true;
        break;
      case Action::kOom:
        allocate(index, event);
        break;
      case Action::kSegmentAlloc:
      case Action::kSegmentMap:
        in_release_ = false;
        break;
      case Action::kSnapshot:
        break;
    }
  }

  void allocate(uint64_t index, const AllocatorEvent& event) {
    in_release_ = false;
    const BlockId id = simulator_.malloc(
        {event.size_bytes, event.stream, facts_.pool_of(trace_, event), event.stack});
    const bool is_of_both = event.action == Action::kOom && index < judged_from_;
    if (id == kNoBlock) {
      if (!result_.first_oom_event_index && !is_of_both) result_.first_oom_event_index = index;
    } else if (is_of_both) {
      simulator_.free_completed(id);  // the program went on without it
    } else if (event.action == Action::kAlloc) {
      // A block that is live here already was freed without an event.
      const BlockId before = std::exchange(block_of(index), id);
      if (before != kNoBlock) simulator_.free_completed(before);
    }
  }
  /// What an event's block is here; kNoBlock: not live.
  BlockId& block_of(uint64_t index) { return live_[start_.numbers[index]]; }

  void give_back(uint64_t index) {
    const ReleaseCause why = release_cause(trace_, index);
    if (why == ReleaseCause::kUnclear) ++result_.releases_unclear;
    if (why == ReleaseCause::kRetry) {
      const bool is_dropped = simulator_.config().capacity_bytes.has_value();
      ++(is_dropped ? result_.retries_dropped : result_.retries_carried_out);
      if (is_dropped) return;
    }
    ++result_.cache_empties;
    simulator_.empty_cache();
  }

  const uint64_t judged_from_;
  Blocks* const room_;
  const AllocatorTrace& trace_;
  const TraceStart& start_;
  const TraceFacts& facts_;
  std::unique_ptr<AddressSource> addresses_;
  Simulator simulator_;
  std::vector<BlockId> live_;  // by number of the recorded block
  bool in_release_ = false;
  uint64_t peak_ = 0;
  WhatIfResult result_;
};

}  // namespace

WhatIfResult what_if(const AllocatorTrace& trace, const AllocatorConfig& config,
                     const Release& release) {
  return what_if(trace, trace_start(trace), config, release);
}

WhatIfResult what_if(const AllocatorTrace& trace, const TraceStart& start,
                     const AllocatorConfig& config, const Release& release) {
  return WhatIf(trace, start, config, release).run(nullptr);
}

WhatIfResult what_if(const AllocatorTrace& trace, const AllocatorConfig& config,
                     const Release& release, ReplayObserver observer) {
  return WhatIf(trace, trace_start(trace), config, release).run(&observer);
}

std::optional<LeastCapacity> least_capacity(const AllocatorTrace& trace, const TraceStart& start,
                                            AllocatorConfig config, const Release& release,
                                            uint64_t low, uint64_t high, uint64_t error) {
  const auto until_refused = [](uint64_t, const Simulator& simulator) {
    return simulator.statistics().num_ooms == 0;
  };
  const ReplayObserver observer = until_refused;
  Blocks room;
  std::optional<LeastCapacity> least;
  const auto serves = [&](uint64_t bytes) {
    config.capacity_bytes = bytes;
    const WhatIfResult result = WhatIf(trace, start, config, release, 0, &room).run(&observer);
    if (result.gave_up_at || result.oom_before_first_event || result.num_ooms != 0) return false;
    least = {bytes, result.num_alloc_retries};
    return true;
  };
  if (serves(low) || !serves(high)) return least;
  while (high - low > error) {
    const uint64_t middle = low + (high - low) / 2;
    (serves(middle) ? high : low) = middle;
  }
  return least;
}

WhatIfResult what_if_until(const AllocatorTrace& trace, const TraceStart& start,
                           const AllocatorConfig& config, const Release& release, uint64_t last) {
  const auto up_to_last = [last](uint64_t event, const Simulator&) {
    return event == kBeforeFirstEvent || event < last;
  };
  const ReplayObserver observer = up_to_last;  // which only refers to it
  return WhatIf(trace, start, config, release, last).run(&observer);
}

}  // namespace gpumemprof

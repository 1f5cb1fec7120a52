// Replays what an allocator recorded: under the recorded settings, to know how well the simulation
// follows it, and under others, to know what they would have done.
#pragma once

#include <absl/functional/function_ref.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "allocator/config.h"
#include "allocator/layout.h"
#include "allocator/release.h"
#include "allocator/simulator.h"
#include "trace/allocator_trace.h"
#include "trace/trace_start.h"

namespace gpumemprof {

/// A highest value and the first event right after which it was reached; no event: it was so
/// before the first one.
struct EventPeak {
  uint64_t bytes = 0;
  std::optional<uint64_t> event;
};

/// The figures at one moment.
struct MemoryFigures {
  uint64_t allocated_bytes = 0;
  uint64_t active_bytes = 0;
  uint64_t requested_bytes = 0;
  uint64_t reserved_bytes = 0;
  uint64_t releasable_bytes = 0;  ///< of reserved: what empty_cache would give back
};

struct ReplayResult {
  Release release;                    ///< under whose rules
  bool release_was_searched = false;  ///< several were tried, this one matched most
  uint64_t alloc_addresses = 0;       ///< allocations in the trace
  uint64_t matched = 0;               ///< of them: the simulator chose the recorded address
  std::optional<uint64_t> first_mismatch_event;  ///< index in AllocatorTrace::events
  std::string mismatch_reason;                   ///< one sentence, empty without a mismatch
  /// Driver calls (segment_alloc, segment_map) that were recorded, and those foreseen exactly.
  uint64_t segment_events = 0;
  uint64_t segment_events_matched = 0;
  uint64_t impossible_events = 0;   ///< frees of nothing, allocations over live blocks: not a heap
  uint64_t end_blocks = 0;          ///< blocks of the snapshot's segments, free ones too
  uint64_t end_blocks_matched = 0;  ///< of them: the replay ended with the same one
  EventPeak peak_allocated, peak_active, peak_requested, peak_reserved;
  MemoryFigures start, end;
  uint64_t end_segments = 0;  ///< as a snapshot counts them
  bool stopped = false;       ///< the observer answered false, or it was given up
  /// The simulation took more steps than any real trace asks for (docs/allocator.md); what is left
  /// counts as not matched.
  bool gave_up = false;

  /// 0 to 1; 1 for a trace without allocations.
  double share_matched() const {
    return alloc_addresses == 0 ? 1 : static_cast<double>(matched) / alloc_addresses;
  }
};

/// Called after every event, and once before the first (event = kBeforeFirstEvent). False stops.
/// The simulator may be looked into (layout.h) and must not be kept.
using ReplayObserver = absl::FunctionRef<bool(uint64_t event, const Simulator& simulator)>;
inline constexpr uint64_t kBeforeFirstEvent = ~0ull;

/// Starts from the state that the trace and the end state imply and serves every allocation by the
/// simulator's own rules; only what the driver and the program decided is taken from the record
/// (addresses of new segments, when segments went back). An allocation whose recorded address is
/// another is a mismatch; the block is then moved to the recorded place where that is free, so each
/// later allocation is judged by itself and `matched` is a share of right predictions.
/// Never fails: a trace that is no heap's history matches badly and says so.
ReplayResult replay_recorded(const AllocatorTrace& trace, const RecordedSettings& settings,
                             const Release& release);
ReplayResult replay_recorded(const AllocatorTrace& trace, const TraceStart& start,
                             const RecordedSettings& settings, const Release& release,
                             ReplayObserver observer);
ReplayResult replay_recorded(const AllocatorTrace& trace, const RecordedSettings& settings,
                             const Release& release, ReplayObserver observer);

/// The release of those that the hint allows whose rules match most (the first that matches all is
/// taken, newest last); of neighbours with the same rules the newer stands for both. `replay` does
/// one release, `keep` is called where what it did last is the best so far. `release_was_searched`
/// where more than one was possible. `equal`, where it is given, gets all whose rules match as
/// much, oldest first; that takes a replay by each of the rules.
ReplayResult search_release(const std::string& writer_version_hint,
                            absl::FunctionRef<ReplayResult(const Release&)> replay,
                            absl::FunctionRef<void()> keep, std::vector<Release>* equal = nullptr);
/// The same for a trace alone.
ReplayResult replay_unknown_release(const AllocatorTrace& trace, const RecordedSettings& settings,
                                    const std::string& writer_version_hint);
ReplayResult replay_unknown_release(const AllocatorTrace& trace, const TraceStart& start,
                                    const RecordedSettings& settings,
                                    const std::string& writer_version_hint,
                                    std::vector<Release>* equal = nullptr);

struct WhatIfResult {
  uint64_t peak_reserved_bytes = 0;
  std::optional<uint64_t> peak_reserved_event;
  uint64_t peak_allocated_bytes = 0;
  uint64_t end_reserved_bytes = 0;
  uint64_t segments = 0;       ///< at the end, as a snapshot counts them
  uint64_t peak_segments = 0;  ///< cudaMalloc'ed ones; 0 with expandable segments alone
  uint64_t num_alloc_retries = 0;
  uint64_t num_ooms = 0;
  std::optional<uint64_t> first_oom_event_index;  ///< index in AllocatorTrace::events
  bool oom_before_first_event = false;            ///< the blocks that were live already do not fit
  MemoryFigures at_peak_reserved;                 ///< right after the event of the peak
  /// Free bytes at that moment in segments that live blocks pin.
  uint64_t fragmented_bytes_at_peak() const {
    return at_peak_reserved.reserved_bytes - at_peak_reserved.active_bytes -
           at_peak_reserved.releasable_bytes;
  }
  uint64_t cache_empties = 0;    ///< recorded empty_cache() calls that were carried out
  uint64_t retries_dropped = 0;  ///< recorded releases of a retry, which the recorded device forced
  uint64_t retries_carried_out = 0;  ///< those that were not dropped, as there is no capacity
  /// Recorded releases right before a new segment without stacks that could tell one from the
  /// other: taken for empty_cache().
  uint64_t releases_unclear = 0;
  /// The event at which the simulation took too many steps and ended: all figures are those up to
  /// there and answer nothing.
  std::optional<uint64_t> gave_up_at;
};

/// The trace's requests under other settings: the blocks that were live before it are made first,
/// in address order; addresses are the simulator's own. The program is taken to ask for the same
/// whatever happens: an allocation that fails is left out, one that had failed stays live.
/// With a capacity the recorded retries are dropped (the recorded device forced them), without one
/// they are carried out as empty_cache().
WhatIfResult what_if(const AllocatorTrace& trace, const AllocatorConfig& config,
                     const Release& release);
WhatIfResult what_if(const AllocatorTrace& trace, const TraceStart& start,
                     const AllocatorConfig& config, const Release& release);
WhatIfResult what_if(const AllocatorTrace& trace, const AllocatorConfig& config,
                     const Release& release, ReplayObserver observer);

/// The same up to and with event `last`, all figures being those of that part. A request before it
/// that the recording refused is no failure; where it fits here it is given back, as the program
/// went on without it.
WhatIfResult what_if_until(const AllocatorTrace& trace, const TraceStart& start,
                           const AllocatorConfig& config, const Release& release, uint64_t last);

/// The least memory of a device with which no request is refused, between `low` and `high` and at
/// most `error` too high. The allocator then gives memory back so many times. None where `high` is
/// too low.
struct LeastCapacity {
  uint64_t bytes = 0;
  uint64_t num_alloc_retries = 0;
};
std::optional<LeastCapacity> least_capacity(const AllocatorTrace& trace, const TraceStart& start,
                                            AllocatorConfig config, const Release& release,
                                            uint64_t low, uint64_t high, uint64_t error);

}  // namespace gpumemprof

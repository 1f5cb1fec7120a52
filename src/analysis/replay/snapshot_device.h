// The replay of one device of a snapshot by the allocator's rules.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "allocator/replay.h"
#include "analysis/finding.h"
#include "analysis/pass/moments.h"
#include "analysis/replay/allocator_moment.h"
#include "analysis/replay/cache_growth.h"
#include "analysis/replay/snapshot_oom.h"
#include "analysis/statistics/timeline.h"
#include "analysis/statistics/worth.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

class BlockKeeper;  // analysis/categories/block_keeper.h

/// Whether a stack is below torch.cuda.empty_cache(): Python's function, or the allocator's own.
bool is_of_empty_cache(const Tables& tables, uint32_t stack);

/// Sums over the segments that the file lists: the end, as the allocator itself counted it.
struct SegmentSums {
  uint64_t requested_bytes = 0;  ///< of blocks that are allocated or wait for a stream
  uint64_t allocated_bytes = 0;
  uint64_t active_bytes = 0;
  uint64_t reserved_bytes = 0;
  uint64_t segments = 0;
  uint64_t blocks = 0;              ///< allocated ones
  uint64_t private_pool_bytes = 0;  ///< of reserved: CUDA graphs and MemPools
};
SegmentSums sum_segments(const AllocatorTrace& trace);

/// Allocations for which no more could be reserved at first: the allocator released its cache and
/// tried again. Only those that the trace shows: one without a cache to release is not among them.
struct Retries {
  uint64_t count = 0;
  uint64_t first_event = 0;     ///< the first release
  uint64_t released_bytes = 0;  ///< by all of them
};

/// Two simulations of the trace, on the device of its first refusal or one that is never full. Both
/// begin without what was cached before the trace, so neither is the recorded peak.
struct ExpandableTrial {
  uint64_t peak_reserved_bytes_as_it_was = 0;
  uint64_t peak_reserved_bytes = 0;  ///< with expandable segments

  uint64_t saved_bytes() const {
    return less_or_none(peak_reserved_bytes_as_it_was, peak_reserved_bytes);
  }
};

/// One device, replayed.
struct SnapshotDevice {
  bool is_replayed = false;  ///< false: figures from the replay are unknown
  bool is_recorded =
      false;  ///< from a recording that followed the allocator: threads and marks are known
  ReplayResult replay;
  SegmentSums end;
  uint64_t live_before_bytes = 0;  ///< requested, of blocks that were live before the first event
  uint64_t live_before_count = 0;
  /// Cached before the first event: of the segments that the trace begins with releasing, in one
  /// call of empty_cache().
  uint64_t cached_before_bytes = 0;
  uint64_t cached_before_events = 0;             ///< so many, at the beginning
  uint64_t most_reserved_after_cache_bytes = 0;  ///< once that was given back
  uint32_t cached_before_stack = 0;  ///< of that call
  bool has_history = false;
  bool has_times = false;
  bool overflowed = false;
  /// True where the replay ends with the bytes that the segments have: then allocated and reserved
  /// bytes hold at every event. Else `contradiction` says what does not fit.
  bool is_consistent = false;
  std::string contradiction;
  /// The requested peak; absent where it lies before the first event.
  std::optional<uint64_t> peak_event;
  std::optional<int64_t> peak_time_us;
  std::optional<AllocatorMoment> at_peak;
  /// Where most was reserved, right after the allocation that asked for it; absent where that is
  /// the moment of at_peak.
  std::optional<AllocatorMoment> at_most_reserved;
  std::optional<int64_t> peak_allocated_time_us, peak_reserved_time_us;
  uint64_t most_fragmented_bytes = 0;  ///< free bytes in pinned segments, at their highest
  std::optional<uint64_t> most_fragmented_event;
  std::string recorded_settings;  ///< as text; empty: PyTorch's defaults
  bool settings_known = false;
  Timeline allocated, reserved;  ///< over time, or over events where has_times is false
  std::optional<VariableShapes> variable_shapes;  ///< only where is_consistent
  std::optional<IdleCache> idle_cache;            ///< likewise
  /// Where variable_shapes or fragmentation asks for it; absent where it was recorded with them.
  std::optional<ExpandableTrial> expandable;
  std::vector<OomExplanation> ooms;               ///< kMostOoms: the first and the last
  uint64_t oom_count = 0;
  Retries retries;
  /// "graph_pool_slack", "stranded_stream_cache", "record_stream_pending", "settings_conflict",
  /// "cache_slack" by the name "segment_churn"; of pinned host memory "pinned_rounding" and
  /// "pinned_cache_growth".
  std::vector<Finding> troubles;
};

/// The trouble of this kind; null where there is none.
const Finding* trouble(const SnapshotDevice& device, FindingKind kind);

/// What live blocks pin at the peak or, if that is more, where most was reserved.
struct PinnedPieces {
  const AllocatorMoment* moment = nullptr;
  uint64_t bytes = 0;  ///< without private pools that have a trouble of their own
  bool is_at_peak = true;
};
/// `device.at_peak` is there.
PinnedPieces most_pinned(const SnapshotDevice& device);

/// The recorded settings with expandable segments.
std::string expandable_settings(const SnapshotDevice& device);

struct SnapshotAnalysisOptions {
  size_t timeline_buckets = 512;
  bool replays = true;                      ///< false: SnapshotDevice is that of describe_device()
  std::vector<MomentRequest> moments;       ///< as AnalysisOptions::moments
  BlockKeeper* keeper = nullptr;            ///< as AnalysisOptions::keeper
  unsigned threads = 2;                     ///< for the what-ifs of an out-of-memory
  std::function<void(double)> on_progress;  ///< 0 to 1; may be empty
};

/// Known without a replay: `peak_event` as below.
SnapshotDevice describe_device(const AllocatorSnapshot& snapshot, size_t index,
                               std::optional<uint64_t> peak_event);

/// Replays `snapshot.traces[index]`, which begins with `start`, and looks into the allocator at
/// `peak_event` (absent: before the first event), where most is reserved and at every kOom. The
/// release is that of the reader's hint whose rules match most. Pinned host memory has another
/// allocator: it is described, and its troubles are looked for.
SnapshotDevice replay_device(const AllocatorSnapshot& snapshot, size_t index,
                             const TraceStart& start, std::optional<uint64_t> peak_event,
                             const SnapshotAnalysisOptions& options);

}  // namespace gpumemprof

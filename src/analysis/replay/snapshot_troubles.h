// What a replayed snapshot says of single kinds of trouble.
#pragma once

#include <cstdint>
#include <optional>

#include "allocator/simulator.h"
#include "analysis/finding.h"
#include "analysis/replay/snapshot_device.h"
#include "trace/allocator_trace.h"
#include "trace/tables.h"
#include "trace/trace_start.h"

namespace gpumemprof {

// Free bytes inside private pools, those of CUDA graphs and MemPools: nothing outside a pool can
// use them, and a graph writes to the free blocks of its own at every replay.

struct PoolSlack {
  uint64_t free_bytes = 0;
  uint64_t pinned_bytes = 0;  ///< of them: in segments with live blocks
  uint64_t pools_bytes = 0;   ///< reserved by private pools
  uint64_t reserved_bytes = 0;
  uint64_t pools = 0;
  uint32_t stack = 0;  ///< of the segment with the most of it
};
PoolSlack pool_slack(const AllocatorMoment& moment);

/// "graph_pool_slack", of the peak or the end, whichever has more. Absent below 32 MiB and a 20th of
/// what is reserved. Where there are several pools, all in one is simulated.
std::optional<Finding> find_graph_pool_slack(const AllocatorTrace& trace, const TraceStart& start,
                                             const RecordedSettings& settings,
                                             const SnapshotDevice& device);

// What PyTorch's allocator of pinned host memory took and what of it was in use, by a snapshot's
// host_segments and host_traces. It hands out whole blocks, each as large as the driver gave it, to
// requests that round to the same size.

struct PinnedUse {
  uint64_t taken_bytes = 0;      ///< at the end: all blocks, free ones too
  uint64_t peak_used_bytes = 0;  ///< blocks in use, at their highest; as large as they are
  uint64_t requested_at_peak_bytes = 0;  ///< of those; of a block whose size is not known all of it
  uint64_t blocks_at_peak = 0;
  uint64_t blocks = 0;                ///< at the end
  uint64_t distinct_sizes = 0;        ///< that were asked for
  uint64_t returned_bytes = 0;        ///< that went back to the driver in the trace
  uint64_t late_bytes = 0;            ///< of new blocks, in the second half of the trace
  uint32_t rounded_stack = 0;         ///< with the most rounding at the peak
  uint32_t late_stack = 0;            ///< with the most of late_bytes
};
PinnedUse pinned_use(const AllocatorTrace& trace, const TraceStart& start);

/// A cache of pinned host memory that takes ever new sizes and gives nothing back.
/// "pinned_cache_growth": a quarter of what was taken, and 32 MiB, were never in use at one time,
/// nothing went back, and a 20th was taken in the second half of the trace.
std::optional<Finding> find_pinned_cache_growth(const PinnedUse& use);

/// Pinned host buffers that are larger than asked for: PyTorch rounds each to a power of two.
/// "pinned_rounding", where it is 32 MiB and a 20th of what was in use.
std::optional<Finding> find_pinned_rounding(const PinnedUse& use);

/// Blocks that their owner has let go and that wait for another stream, by record_stream().
/// "record_stream_pending": how much lower the peak of live blocks were if none had to wait. Absent
/// below 32 MiB and a 20th of that peak. What it would spare of the reserved peak is simulated.
/// Asks for a consistent replay.
std::optional<Finding> find_record_stream_pending(const AllocatorTrace& trace,
                                                  const TraceStart& start,
                                                  const RecordedSettings& settings,
                                                  const SnapshotDevice& device);

/// Segments that go back to the device and come again, over and over.
/// "cache_slack" by the name kSegmentChurn: where three times the reserved peak or more was freed
/// in segments, 32 MiB at least. Says whether stacks have empty_cache() freeing half of them or
/// more. Asks for a consistent replay.
std::optional<Finding> find_segment_churn(const AllocatorTrace& trace, const Tables& tables,
                                          const SnapshotDevice& device);

/// Settings of the allocator that work against each other.
/// "settings_conflict": expandable segments with max_split_size_mb, where the same requests need
/// 32 MiB and a 20th of the reserved peak less with one of them alone. Both are simulated. Asks for
/// a consistent replay.
std::optional<Finding> find_settings_conflict(const AllocatorTrace& trace, const TraceStart& start,
                                              const RecordedSettings& settings,
                                              const SnapshotDevice& device);

// Cached memory of one stream, free when another stream had to reserve more: a block serves the
// stream that it was allocated for alone.

/// Fed after every event of a replay. O(1) an event, O(streams) where the reserved bytes rise.
class StrandedCache {
 public:
  /// Both must outlive it.
  StrandedCache(const AllocatorTrace& trace, const TraceStart& start)
      : trace_(&trace), start_(&start) {}

  void begin(const AllocatorStatistics& now) { reserved_ = now.reserved.current; }
  void see(uint64_t event, const Simulator& simulator) {
    const uint64_t reserved = simulator.statistics().reserved.current;
    const bool rose = reserved > reserved_;
    reserved_ = reserved;
    if (trace_->streams.size() > 1 && (rose || trace_->events[event].action == Action::kOom))
      [[unlikely]]
      look(event, simulator);
  }

  /// "stranded_stream_cache", where all on one stream would have spared 32 MiB and a 20th of the
  /// reserved peak, or every refusal, in the simulation. Asks for a consistent replay.
  std::optional<Finding> find(const RecordedSettings& settings, const SnapshotDevice& device) const;

 private:
  void look(uint64_t event, const Simulator& simulator);

  const AllocatorTrace* trace_;
  const TraceStart* start_;
  uint64_t reserved_ = 0;  // after the event before
  uint64_t most_ = 0, event_ = 0, needed_ = 0;
};

}  // namespace gpumemprof

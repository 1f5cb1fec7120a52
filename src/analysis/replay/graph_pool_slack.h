// Free bytes inside private pools, those of CUDA graphs and MemPools: nothing outside a pool can
// use them, and a graph writes to the free blocks of its own at every replay.
#pragma once

#include <optional>

#include "analysis/finding.h"
#include "analysis/replay/snapshot_device.h"
#include "trace/allocator_trace.h"
#include "trace/trace_start.h"

namespace gpumemprof {

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

}  // namespace gpumemprof

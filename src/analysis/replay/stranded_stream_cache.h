// Cached memory of one stream, free when another stream had to reserve more: a block serves the
// stream that it was allocated for alone.
#pragma once

#include <optional>

#include "allocator/simulator.h"
#include "analysis/finding.h"
#include "analysis/replay/snapshot_device.h"
#include "trace/allocator_trace.h"
#include "trace/trace_start.h"

namespace gpumemprof {

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

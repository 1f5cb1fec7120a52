// A trace with other events in place of its own: what a change of the program would have asked for.
#pragma once

#include "allocator/config.h"
#include "allocator/replay.h"
#include "analysis/replay/snapshot_device.h"
#include "trace/allocator_trace.h"
#include "trace/trace_start.h"

namespace gpumemprof {

/// `change(index, &event)` is false where the event is left out. Segments as they were, for the
/// caller to change: what was live before the trace is told by them.
template <class Change>
AllocatorTrace changed_events(const AllocatorTrace& trace, const Change& change) {
  AllocatorTrace out;
  out.device = trace.device;
  out.has_times = trace.has_times, out.has_history = trace.has_history;
  out.has_pools = trace.has_pools;
  out.device_bytes = trace.device_bytes;
  out.reserve_limit = trace.reserve_limit;
  out.segments = trace.segments;
  out.streams = trace.streams, out.pools = trace.pools;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    AllocatorEvent event = trace.events[i];
    if (change(i, &event)) out.events.append(event);
  }
  return out;
}

/// Two what-ifs under the recorded settings, on the device that the first refusal tells of: the
/// trace as it is, and as it would be.
struct ChangeSimulated {
  bool is_known = false;  ///< false: one of them gave up, or does not begin
  WhatIfResult as_it_was, changed;

  uint64_t saved_bytes() const;     ///< of the reserved peak
  bool avoids_all_refusals() const;  ///< there were some, and the change leaves none
};
ChangeSimulated simulate_change(const AllocatorTrace& trace, const TraceStart& start,
                                const AllocatorTrace& changed, const RecordedSettings& settings,
                                const SnapshotDevice& device);

}  // namespace gpumemprof

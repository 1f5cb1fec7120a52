// One device of a snapshot as a stream of events, so that the questions to recordings work for
// snapshots too.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trace/allocator_trace.h"
#include "trace/event_source.h"
#include "trace/live_state.h"
#include "trace/trace_start.h"

namespace gpumemprof {

/// In traces without times an event's "time" is its index times this, so a timeline's first bucket
/// is one event wide.
inline constexpr uint64_t kTicksPerEvent = 1024;

/// Yields the events of `snapshot.traces[index]`, numbered from 0, as those of device `index`.
/// (SnapshotSource merges the devices by time, so its event numbers are no indexes of a trace.)
/// size_bytes is the requested size. A block ends when its free is completed, or requested if the
/// trace has no completions. What was live before the first event is in the state before it:
/// `start` is trace_start() of the trace. Batches number their blocks. `snapshot` and `start` must
/// outlive the source.
class TraceSource : public EventSource {
 public:
  TraceSource(const AllocatorSnapshot& snapshot, size_t index, const TraceStart& start);

  const SourceInfo& info() const override { return info_; }
  const Tables& tables() const override { return snapshot_.tables; }
  Result<bool> next(EventBatch* batch) override;
  const Loss& loss() const override { return snapshot_.loss; }
  const LiveState* state_before_first_event() const override { return &before_; }
  double progress() const override;

  /// The time of the trace's events in batches: nanoseconds since 1970, or ticks.
  static uint64_t time_of(const AllocatorTrace& trace, uint64_t index, int64_t time_us) {
    if (!trace.has_times) return index * kTicksPerEvent;
    // A damaged file may have any time; it is clamped to 1970 and the largest nanoseconds.
    constexpr int64_t kMost = INT64_MAX / 1000;
    return static_cast<uint64_t>(std::clamp<int64_t>(time_us, 0, kMost)) * 1000;
  }

 private:
  const AllocatorSnapshot& snapshot_;
  const AllocatorTrace& trace_;
  const TraceStart& start_;
  uint16_t device_;
  SourceInfo info_;
  LiveState before_;
  bool frees_in_two_steps_ = false;
  size_t at_ = 0;
};

}  // namespace gpumemprof

// A snapshot as a stream of events, for everything that reads streams: analyze, export, diff.
#pragma once

#include <memory>
#include <vector>

#include "trace/allocator_trace.h"
#include "trace/event_source.h"
#include "trace/live_state.h"

namespace gpumemprof {

/// Yields the events of all devices, merged by time if every device has times, otherwise device by
/// device. size_bytes is the requested size; time_ns is wall-clock time, 0 in traces without times.
/// Frees have two steps if the trace has both.
///
/// A trace may begin in the middle of a program's life. state_before_first_event() has what was
/// live before it: blocks that the trace frees without having allocated them (their stack is
/// unknown, because a free has the stack of the free), and blocks live at the end that it never
/// allocated.
class SnapshotSource final : public EventSource {
 public:
  explicit SnapshotSource(std::shared_ptr<const AllocatorSnapshot> snapshot);

  const SourceInfo& info() const override { return info_; }
  const Tables& tables() const override { return snapshot_->tables; }
  const Loss& loss() const override { return snapshot_->loss; }
  const LiveState* state_before_first_event() const override { return before_.get(); }
  double progress() const override;
  Result<bool> next(EventBatch* batch) override;

  const AllocatorSnapshot& snapshot() const { return *snapshot_; }

 private:
  void find_capabilities();
  void find_state_before();
  void adopt_blocks_of(uint16_t device, LiveState* before) const;
  /// The device whose next event is due, and the time (exclusive) until which its events come
  /// first.
  size_t next_device(int64_t* until_us, bool* until_is_later_device) const;

  std::shared_ptr<const AllocatorSnapshot> snapshot_;
  SourceInfo info_;
  std::unique_ptr<LiveState> before_;
  std::vector<size_t> at_;  // of each trace: the next event
  uint64_t yielded_ = 0;
  uint64_t total_ = 0;
  bool merged_ = false;
  bool frees_in_two_steps_ = false;
};

}  // namespace gpumemprof

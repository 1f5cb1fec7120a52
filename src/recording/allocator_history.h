// What PyTorch's CUDA allocator told of itself while it was recorded, as a snapshot of it would
// have it: so that replay, what-if and the export of snapshots read recordings too.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "recording/device_history.h"
#include "trace/allocator_trace.h"
#include "trace/event_source.h"

namespace gpumemprof {

struct HistoryOptions {
  /// Snapshots get stacks and strings of their own, and wall-clock times. Else stacks are ids of
  /// the source's tables and times are on its clock: for an analysis that goes with one of the
  /// source.
  bool stands_alone = true;
};

/// The histories of one recording: fed with all of its batches, in their order.
class AllocatorHistory {
 public:
  /// `source` is where the batches come from and must outlive it.
  AllocatorHistory(const EventSource& source, HistoryOptions options);
  void add(const EventBatch& batch);
  /// One snapshot for each process whose allocator was followed from its first segment to the end:
  /// the devices that it used, the history complete. Call once, at the end.
  std::vector<AllocatorSnapshot> finish();
  /// Why devices are missing, one phrase each; complete after finish().
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  DeviceHistory* history_of(uint16_t device);
  uint32_t own_stack(uint32_t stack);
  AllocatorSnapshot snapshot_of(uint32_t process, const FollowedAllocator& allocator);

  const EventSource& source_;
  HistoryOptions options_;
  std::map<uint16_t, DeviceHistory> devices_;  // by index in the source's tables
  std::vector<uint8_t> is_asked_;              // by the same: 1 not followed, 2 in devices_
  Tables own_;
  std::vector<uint32_t> own_stacks_{0};
  std::vector<std::string> reasons_;
};

/// Passes a source on and feeds what goes through it to a history. Both must outlive it.
class HistoryTee final : public EventSource {
 public:
  HistoryTee(EventSource* source, AllocatorHistory* history) : source_(source), history_(history) {}
  const SourceInfo& info() const override { return source_->info(); }
  const Tables& tables() const override { return source_->tables(); }
  const Loss& loss() const override { return source_->loss(); }
  const LiveState* state_before_first_event() const override {
    return source_->state_before_first_event();
  }
  double progress() const override { return source_->progress(); }
  Result<bool> next(EventBatch* batch) override {
    Result<bool> more = source_->next(batch);
    if (more && *more) history_->add(*batch);
    return more;
  }

 private:
  EventSource* source_;
  AllocatorHistory* history_;
};

/// Reads all of `source` for the history of the one process that has one. Errors: those of the
/// source; kUnsupported with the reason where no allocator, or those of several processes, were
/// followed.
Result<AllocatorSnapshot> read_allocator_history(EventSource& source);

}  // namespace gpumemprof

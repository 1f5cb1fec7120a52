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
  /// Where add() of one event is in the sparse columns of its batch; a new one for each batch.
  struct Place {
    size_t next_requested = 0, next_detail = 0;
  };
  /// One event of a batch, in their order.
  void add(const EventBatch& batch, uint32_t index, Place* place);
  /// That of a device of the source's tables; null where nobody followed it.
  const DeviceHistory* find(uint16_t device) { return history_of(device); }
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

/// Reads all of `source` for the history of the one process that has one. Errors: those of the
/// source; kUnsupported with the reason where no allocator, or those of several processes, were
/// followed.
Result<AllocatorSnapshot> read_allocator_history(EventSource& source);

}  // namespace gpumemprof

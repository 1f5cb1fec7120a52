// The history of PyTorch's CUDA allocator from a recording, in the form of a snapshot, so that
// replay, what-if and the export of snapshots read recordings too.
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
  /// Snapshots get their own stacks and strings, and wall-clock times. Otherwise stacks are ids of
  /// the source's tables and times are on its clock, for an analysis that is combined with one of
  /// the source.
  bool stands_alone = true;
};

/// The histories of one recording; add all of its batches in order.
class AllocatorHistory {
 public:
  /// `source` provides the batches and must outlive it.
  AllocatorHistory(const EventSource& source, HistoryOptions options);
  void add(const EventBatch& batch);
  /// The position of add() in the sparse columns of its batch; a new one for each batch.
  struct Place {
    size_t next_requested = 0, next_detail = 0;
  };
  /// One event of a batch, in order.
  void add(const EventBatch& batch, uint32_t index, Place* place);
  /// The history of a device of the source's tables; null if its allocator was not recorded.
  const DeviceHistory* find(uint16_t device) { return history_of(device); }
  /// One snapshot for each process whose allocator was recorded from its first segment to the end:
  /// its devices, with complete history. Call once, at the end.
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
/// source; kUnsupported with the reason if no allocator, or those of several processes, were
/// recorded.
Result<AllocatorSnapshot> read_allocator_history(EventSource& source);

}  // namespace gpumemprof

// Everything becomes an EventSource; everything reads one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/event.h"
#include "trace/tables.h"

namespace gpumemprof {

class LiveState;

/// What a source can tell. An analysis that needs more answers "unknown, because …".
struct Capabilities {
  bool times = false;
  bool addresses = false;
  bool stacks = false;
  bool segments = false;
  bool complete_history = false;  ///< false: a suffix; what was live before it is not listed
  bool threads = false;  ///< events name their thread, and each thread's come in its own order
};

/// Something that happened and is not in the events, with how often and why.
struct LossReason {
  /// As `events`: some, or there may be, and nobody knows how many.
  static constexpr uint64_t kUncounted = UINT64_MAX;
  uint64_t events = 0;  ///< 0 where no event is missing for it
  std::string reason;
  bool is_counted() const { return events != 0 && events != kUncounted; }
};

/// What was lost, stated in every report.
struct Loss {
  uint64_t events = 0;  ///< those that are counted
  uint64_t bytes = 0;   ///< bytes of the file that could not be read
  std::vector<LossReason> reasons;
  /// `lost_events` may be LossReason::kUncounted.
  void add(uint64_t lost_events, uint64_t lost_bytes, std::string reason);
  /// More events than `events` may be missing, and nobody knows how many.
  bool is_open_ended() const;
  /// The one place that decides whether figures are exact.
  bool has_every_event() const { return events == 0 && !is_open_ended(); }
};

struct SourceInfo {
  std::string path;
  std::string kind;  ///< "recording"
  uint64_t bytes = 0;
  std::string writer_version_hint;
  Capabilities can;
};

/// Yields batches of events in time order. Not thread-safe; one pass.
class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual const SourceInfo& info() const = 0;
  /// Grows while batches are read; ids that were handed out stay valid.
  virtual const Tables& tables() const = 0;
  /// Fills `batch` (cleared first). False at the end; the batch is empty then.
  virtual Result<bool> next(EventBatch* batch) = 0;
  /// Complete once next() has answered false.
  virtual const Loss& loss() const = 0;
  /// Where the oldest events were dropped (--max-disk) (--max-disk) or the blocks that were live
  /// before the first event are known (a snapshot): the state right before the first event that is
  /// left, so that peaks stay exact. Null where there is none.
  virtual const LiveState* state_before_first_event() const { return nullptr; }
  /// 0 to 1, for a progress bar.
  virtual double progress() const { return 0; }
};

}  // namespace gpumemprof

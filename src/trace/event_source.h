// Every input becomes an EventSource; every consumer reads one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/event.h"
#include "trace/tables.h"

namespace gpumemprof {

class LiveState;

/// What a source provides. An analysis that needs more answers "unknown, because …".
struct Capabilities {
  bool times = false;
  bool addresses = false;
  bool stacks = false;
  bool segments = false;
  bool complete_history = false;  ///< false: a suffix; what was live before it is not listed
  bool threads = false;  ///< events name their thread, and each thread's come in its own order
};

/// Something that is missing from the events, with the number and the reason.
struct LossReason {
  /// As `events`: an unknown number, possibly none.
  static constexpr uint64_t kUncounted = UINT64_MAX;
  uint64_t events = 0;  ///< 0 where no event is missing for it
  std::string reason;
  bool is_counted() const { return events != 0 && events != kUncounted; }
};

/// What was lost; stated in every report.
struct Loss {
  uint64_t events = 0;  ///< those that are counted
  uint64_t bytes = 0;   ///< bytes of the file that could not be read
  std::vector<LossReason> reasons;
  /// `lost_events` may be LossReason::kUncounted.
  void add(uint64_t lost_events, uint64_t lost_bytes, std::string reason);
  /// An unknown number of events beyond `events` may be missing.
  bool is_open_ended() const;
  /// The only place that decides whether figures are exact.
  bool has_every_event() const { return events == 0 && !is_open_ended(); }
};

enum class SourceKind : uint8_t {
  kRecording,
  kPytorchSnapshot,
  kOomDump,
  kTelemetry,
  kTensorflowXplane,
  kTensorflowBfcDump,
  kJaxMemoryProfile,
  kMemory,  ///< events that no file has
};
/// "recording", "pytorch_snapshot", …: that of JSON.
const char* source_kind_name(SourceKind kind);

struct SourceInfo {
  std::string path;
  SourceKind kind = SourceKind::kRecording;
  uint64_t bytes = 0;
  std::string writer_version_hint;
  std::vector<std::string> left_out_folders;  ///< all that was recorded there is of another job
  Capabilities can;
};

/// Yields batches of events in time order. Not thread-safe; one pass.
class EventSource {
 public:
  virtual ~EventSource() = default;
  virtual const SourceInfo& info() const = 0;
  /// Grows while batches are read; existing ids stay valid.
  virtual const Tables& tables() const = 0;
  /// Clears and fills `batch`. Returns false at the end, with an empty batch.
  virtual Result<bool> next(EventBatch* batch) = 0;
  /// Complete after next() has returned false.
  virtual const Loss& loss() const = 0;
  /// If the oldest events were dropped (--max-disk) or the blocks live before the first event are
  /// known (a snapshot): the state right before the first remaining event, so that peaks stay
  /// exact. Otherwise null.
  virtual const LiveState* state_before_first_event() const { return nullptr; }
  /// 0 to 1, for a progress bar.
  virtual double progress() const { return 0; }
};

}  // namespace gpumemprof

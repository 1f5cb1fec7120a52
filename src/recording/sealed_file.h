// The sealed part of a file: definitions, events, checkpoints, the footer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "recording/chunk_scan.h"
#include "recording/lane.h"
#include "recording/raw_stream.h"
#include "recording/sealed_payload.h"
#include "trace/live_state.h"
#include "trace/tables.h"

namespace gpumemprof {

/// The mapping of the file's own ids (in sealed chunks) to Tables.
struct FileIds {
  std::vector<uint32_t> strings{0}, frames{0}, stacks{0}, threads;
  std::vector<uint16_t> devices;
  StreamThreads thread_of_stream;                // -> Tables::threads
  std::map<uint64_t, std::string> device_names;  // by the file's number; also of devices to come
  /// True if every id is the same on both sides, as for the only file of a Tables.
  bool are_the_same() const;
};

/// Facts about events in chunks of their own, by number of the events chunk's first event. They
/// precede its events; of two with the same number the later one counts.
struct Companions {
  std::map<uint64_t, ChunkRef> requested, details, steps, marks;
  std::map<uint64_t, ChunkRef> standing;  ///< marks that hold at that event (kStandingMarks)
};

struct SealedLosses {
  uint64_t missing_events = 0;  ///< numbers between two sealed chunks
  uint64_t dropped_events = 0;  ///< given back on purpose
  uint64_t unreadable_chunks = 0;
  std::vector<Damage> damage;
};

/// Not thread-safe. The file and the tables must outlive it.
class SealedFile {
 public:
  SealedFile(File* file, Tables* tables, uint32_t process);
  /// Reads the definitions and registers the events of new chunks, in the order of their sequence.
  /// What cannot be read is reported in losses().
  void take(const std::vector<ChunkRef>& chunks);

  const FileIds& ids() const { return ids_; }
  FileIds& ids() { return ids_; }
  /// Ordinals in sealed chunks, by stream.
  const std::map<uint32_t, Intervals>& consumed() const { return consumed_; }
  /// Sealed event chunks, by number of their first event.
  const std::vector<ChunkRef>& events() const { return events_; }
  uint64_t event_count() const { return next_event_; }
  uint64_t next_sequence() const { return next_sequence_; }
  /// Number of the first event that was not dropped on purpose.
  uint64_t first_event() const { return first_event_; }
  /// If something other than a footer has the number of events. Before take().
  void expect_events(uint64_t count) { expected_events_ = count; }
  const std::optional<Footer>& footer() const { return footer_; }
  const Companions& companions() const { return companions_; }
  const std::vector<ChunkRef>& checkpoints() const { return checkpoints_; }
  /// The state before the first remaining event, in the file's ids; null if nothing was dropped.
  const LiveState* state_before() const { return state_before_ ? &*state_before_ : nullptr; }
  /// `decodes_ahead`: with a thread a lane (SealedLane). The time of the last event or mark, with the
  /// shift; absent if the file is not complete, or has none.
  std::optional<uint64_t> add_lanes(Merger* merger, uint64_t shift_ns, bool decodes_ahead,
                                    SealedLosses* losses);
  SealedLosses& losses() { return losses_; }
  const SealedLosses& losses() const { return losses_; }
  /// Marks without events in the file: those that apply at first_event() if earlier events were
  /// dropped, and those after the last event.
  Status read_marks_before(EventBatch* batch);
  Status read_marks_after(EventBatch* batch);
  /// Calls `take` with every mark of kind `kind`, including those of standing(); addresses that
  /// only the events have are 0. Damage is left for the lanes to report.
  void each_mark(MarkKind kind, const std::function<void(const Mark&)>& take);
  /// One chunk's events, in Tables' ids. Errors: kBadInput.
  Status read_events(const ChunkRef& chunk, EventBatch* batch);

 private:
  Status take_one(const ChunkRef& chunk, std::string_view payload);
  void account();
  Status read_marks_alone(const std::map<uint64_t, ChunkRef>& chunks, uint64_t event,
                          EventBatch* batch);

  File* file_;
  Tables* tables_;
  ProcessEntries entries_;
  uint32_t process_;
  FileIds ids_;
  std::map<uint32_t, Intervals> consumed_;
  std::vector<ChunkRef> events_;
  std::vector<ChunkRef> checkpoints_;
  Companions companions_;
  std::optional<Footer> footer_;
  uint64_t first_event_ = 0;
  std::optional<LiveState> state_before_;
  uint64_t next_event_ = 0;
  uint64_t expected_events_ = 0;
  uint64_t next_sequence_ = 0;
  absl::flat_hash_map<uint64_t, bool> taken_;
  SealedLosses losses_;
};

}  // namespace gpumemprof

// Seals one file, in as many steps as it takes.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "recording/chunk_writer.h"
#include "recording/raw_file.h"
#include "recording/sealed_events.h"
#include "recording/sealed_file.h"
#include "recording/standing_marks.h"
#include "trace/live_state.h"

namespace gpumemprof {

/// Sealed events take a quarter to an eighth of raw ones.
inline constexpr uint64_t kLeastGain = 4;

struct FileSealOptions {
  /// A checkpoint about every so many bytes of raw events; 0: none.
  uint64_t checkpoint_bytes = 64u << 20;
  /// A live file is sealed when it has gained this much.
  uint64_t gather_bytes = 8u << 20;
  /// Sealed places of a live writer go to its pool (format.h), not back to the file system.
  bool reuse_places = true;
};

/// The order of writes makes it safe to die at any point: definitions, then the events that use
/// them in a chunk that names the raw records it replaces, then the raw records are freed. A chunk
/// is present or not, so a record is either raw or sealed, never both or neither.
///
/// Not thread-safe. The caller must hold the file's lock while a member runs.
class FileSealer {
 public:
  /// Errors: kBadInput if it is not a recording, or if its sealed definitions are damaged, so that
  /// new ones might conflict with them: such a file is left unchanged.
  static Result<std::unique_ptr<FileSealer>> open(File* file, FileSealOptions options);

  const format::FileHeader& header() const { return header_; }
  bool finished() const { return finished_ || sealed_->footer().has_value(); }

  /// Seals events before `end_time_ns` if enough have gathered, or `all` of them. The writer lives.
  /// `is_short` of room: a quarter is enough, or anything that no more comes after, as a writer
  /// stops where it has no room.
  Status advance(uint64_t end_time_ns, bool all, bool is_short = false);
  /// The writer is gone: seals the rest, writes the footer, frees all raw chunks. `on_progress` is
  /// called with the share of the events that are sealed.
  Status finish(const std::function<void(double)>& on_progress = {});
  /// Frees sealed events, oldest first, up to a checkpoint, until `bytes` are freed or there is no
  /// later checkpoint. Returns the freed bytes.
  Result<uint64_t> drop_oldest(uint64_t bytes);
  /// What the file takes if the writer ends now: its buffers and raw events go, what is sealed stays.
  uint64_t lasting_bytes();
  uint64_t events_sealed() const { return events_sealed_; }

 private:
  FileSealer(File* file, FileSealOptions options) : file_(file), options_(options) {}
  Status load();
  Status seal_until(uint64_t end_time_ns, const std::function<void(double)>& on_progress = {});
  Status write_definitions(DefinedSoFar from);
  Status merge_definitions(size_t most_chunks);
  Status write_allocators();
  Status write_marks(const EventBatch& batch, uint64_t time_ns);
  Status write_standing_marks();
  Status write_companion(format::ChunkType type, size_t count, const EventBatch& batch,
                         std::string (*encode)(const EventBatch&), std::vector<ChunkRef>* written);
  Status write_events(EventBatch* batch, const ConsumedTable& consumed);
  Status write_checkpoint();
  ConsumedTable newly_consumed(Merger* merger);
  /// What goes where events are dropped, each by number of the first event.
  std::array<std::vector<ChunkRef>*, 7> of_events() {
    return {&events_, &checkpoints_, &requested_, &details_, &steps_, &marks_, &standing_};
  }
  bool is_consumed(const ChunkRef& chunk) const;
  absl::flat_hash_set<uint32_t> streams_that_ended();
  Status give_back(bool everything_raw);
  Status offer_again(std::vector<ChunkRef> places);
  Status empty_pool();
  uint64_t raw_bytes_written();
  Status punch(uint64_t offset, uint64_t end);
  Result<ChunkRef> write(format::ChunkHeader header, const std::string& payload);

  File* file_;
  FileSealOptions options_;
  format::FileHeader header_{};
  bool finished_ = false;
  std::unique_ptr<Tables> tables_;
  std::unique_ptr<SealedFile> sealed_;
  std::unique_ptr<RawFile> raw_;
  std::unique_ptr<LiveState> state_;
  StandingMarks said_;
  std::unique_ptr<ChunkWriter> writer_;
  EventEncoder encoder_;
  DefinedSoFar defined_;
  ConsumedTable consumed_;
  // By lane of the merger: the ordinal up to which it is in sealed chunks, and the last one it can
  // provide.
  std::vector<uint64_t> lane_position_;
  std::vector<Intervals> lane_sources_;
  std::vector<ChunkRef> events_, checkpoints_, requested_, details_, steps_, marks_, standing_;
  std::vector<ChunkRef> definitions_;     // with the names of their devices
  absl::flat_hash_set<uint32_t> quiet_;   // streams that nobody could write to at the last step
  std::string allocators_;                                // as they were written last
  absl::flat_hash_map<uint64_t, bool> given_back_, own_;  // offsets of chunks
  uint64_t next_sequence_ = 0;
  uint64_t next_event_ = 0;
  uint64_t last_time_ns_ = 0;  // of the last event sealed
  uint64_t since_checkpoint_ = 0;
  uint64_t growth_ = 0;      // since it was last sealed, at the last step
  uint64_t sealed_end_ = 0;  // size of the file when it was last sealed
  uint64_t sealed_raw_ = 0;  // raw_bytes_written() then
  uint64_t events_sealed_ = 0;
};

}  // namespace gpumemprof

// The raw records of one stream (one thread's use of a buffer), and the lane that reads them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/file.h"
#include "recording/chunk_scan.h"
#include "recording/intervals.h"
#include "recording/lane.h"
#include "recording/stream_definitions.h"

namespace gpumemprof {

/// What was published in the buffer at one moment, and is in no chunk.
struct StageHalf {
  uint32_t sequence = 0;
  uint64_t first_ordinal = 0;
  uint32_t missing = 0;  ///< published, but beyond the end of the file
  std::vector<format::RawEvent> records;
};

struct RawStream {
  uint32_t id = 0;
  uint32_t thread = 0;  ///< index in Tables::threads
  std::unique_ptr<StreamDefinitions> definitions;
  std::vector<ChunkRef> chunks;  ///< kRawEvents, by first_ordinal
  std::unique_ptr<StageHalf> half;
  Intervals consumed;  ///< what sealed chunks hold already
};

/// The ordinals in the stream's chunks and buffer.
Intervals sources_of(const RawStream& stream);
/// How many ordinals before the last known one are neither consumed nor in the stream, which may be
/// null.
uint64_t missing_records(const Intervals& consumed, const RawStream* stream);

/// Calls `take` with every intact mark of kind `kind` in the stream's chunks and buffer, even if
/// sealed chunks have it too. before_event is not set.
void each_raw_mark(File& file, RawStream& stream, MarkKind kind,
                   const std::function<void(const Mark&)>& take);

/// The non-events that a lane found. Shared by all lanes of a file.
struct RawLosses {
  uint64_t events = 0;  ///< no loss: that were read
  uint64_t damaged_records = 0;
  uint64_t cut_records = 0;  ///< published, but beyond the end of the file
  uint64_t no_device = 0;
  uint64_t no_placement = 0;    ///< events whose stream and pool are not known: a lost definition
  uint64_t clamped_times = 0;   ///< times before their predecessor's, shown at the predecessor's
  uint64_t changed_chunks = 0;  ///< given back or overwritten while we read
};

/// Reads one stream in order. `file`, `stream` and `losses` must outlive it.
class RawLane final : public Lane {
 public:
  RawLane(File* file, RawStream* stream, uint64_t time_shift_ns, RawLosses* losses);
  uint64_t next_time() const override;
  bool load(EventBatch* block) override;

  const RawStream& stream() const { return *stream_; }
  /// The ordinal after the first `taken` events of the current block, with their records, and its
  /// first `marks`.
  uint64_t ordinal_after(size_t taken, size_t marks) const;
  uint64_t bytes_read() const override { return bytes_read_; }

 private:
  void decode(const format::RawEvent* records, size_t count, uint64_t first_ordinal,
              uint32_t sequence, bool checked, EventBatch* block);
  void decode_one(const format::RawEvent& record, uint64_t ordinal, EventBatch* block);
  void decode_pair(const format::RawEvent& record, uint64_t ordinal, EventBatch* block);
  void decode_mark(const format::RawEvent& record, uint64_t ordinal, EventBatch* block);
  void add_detail(Action action, EventBatch* block);
  uint64_t time_in_order(uint64_t time_ns);
  bool append(Action action, const format::RawEvent& record, uint64_t size, uint32_t stack,
              uint64_t ordinal, EventBatch* block);
  void forget_what_came_before();
  void take_step(Action action, EventBatch* block);

  File* file_;
  RawStream* stream_;
  uint64_t shift_;
  RawLosses* losses_;
  size_t next_chunk_ = 0;
  bool half_done_ = false;
  uint64_t half_time_ = 0;
  uint64_t next_ordinal_ =
      0;  // records before it were emitted, lost, or consumed by a sealed chunk
  uint64_t block_ordinal_ = 0;  // next_ordinal_ when the current block began
  uint64_t last_time_ = 0;
  uint64_t wide_ = 0;
  bool has_wide_ = false;
  uint64_t requested_ = 0;  // of the event to come; 0: as its size, or not known
  uint32_t detail_ = 0;     // of the kRawWide before: RawDetail and placement
  uint64_t device_free_ = 0;
  bool has_device_free_ = false;  // for the kRawOom to come
  bool totals_may_follow_ = false;
  int64_t step_ = kNoStep;               // that the thread allocates for, as far as this half says
  std::vector<uint64_t> ordinal_after_;  // by event of the block
  std::vector<uint64_t> ordinal_after_mark_;
  uint64_t bytes_read_ = 0;
};

}  // namespace gpumemprof

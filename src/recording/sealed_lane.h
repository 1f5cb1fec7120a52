// Events of sealed chunks, for a Merger.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "recording/lane.h"
#include "recording/sealed_events.h"
#include "recording/sealed_file.h"

namespace gpumemprof {

/// Marks in the file's numbers, in those of Tables. False where a thread is not defined.
bool translate_marks(const FileIds& ids, uint64_t shift_ns, std::vector<Mark>* marks);

/// Sealed chunks whose times do not overlap, one after another. While the caller works on a chunk's
/// events those of the next ones are decoded in a thread of its own, if there are many: decoding is
/// a quarter of an analysis. The file is read by the caller's thread alone. Everything that is passed
/// must outlive it and stay as it is.
class SealedLane final : public Lane {
 public:
  SealedLane(File* file, const FileIds* ids, const Companions* companions, uint64_t shift_ns,
             SealedLosses* losses);
  ~SealedLane() override;

  void add(const ChunkRef& chunk) { chunks_.push_back(chunk); }
  void decode_ahead() { decodes_ahead_ = chunks_.size() >= kLeastAhead; }

  uint64_t next_time() const override;
  bool load(EventBatch* block) override;
  uint64_t bytes_read() const override { return bytes_read_; }

 private:
  static constexpr size_t kLeastAhead = 8;  // chunks, from which a second decoder's tables pay
  struct Ahead;  // a thread that decodes the next chunks

  /// A chunk as it is in the file, with the columns that others have for its events; empty: none.
  struct Payloads {
    std::string events, requested, details, steps, marks;
    Status marks_read;
  };
  struct Decoded {
    EventBatch batch;
    Status done, marks_done;
  };
  Status read(const ChunkRef& chunk, Payloads* payloads);
  void decode(const ChunkRef& chunk, const Payloads& payloads, EventDecoder* decoder,
              Decoded* out) const;
  Status decode_events(const ChunkRef& chunk, const Payloads& payloads, EventDecoder* decoder,
                       Decoded* out) const;
  Status translate(EventBatch* block) const;
  void read_ahead();
  void hand_out(const ChunkRef& chunk, Decoded* decoded, EventBatch* block);

  File* file_;
  const FileIds* ids_;
  const Companions* companions_;
  uint64_t shift_;
  SealedLosses* losses_;
  std::vector<ChunkRef> chunks_;
  size_t at_ = 0;
  uint64_t bytes_read_ = 0;
  bool decodes_ahead_ = false;
  Payloads payloads_;
  Decoded decoded_;
  std::unique_ptr<Ahead> ahead_;  // null until there is something to decode ahead
};

}  // namespace gpumemprof

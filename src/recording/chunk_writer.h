// Writes sealed chunks into a file that a live probe may be writing to as well.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/file.h"
#include "recording/chunk_scan.h"

namespace gpumemprof {

/// Not thread-safe. A place is claimed as the probe does it. Then a header of type kZero reserves
/// it, then the payload is written, and last the header that makes it a chunk: a writer that dies
/// in between leaves "never written".
class ChunkWriter {
 public:
  /// `live`: a probe may claim places at the same time, so the first page decides. Otherwise the
  /// end of the file does, because a dead or damaged first page is only a hint.
  ChunkWriter(File* file, uint64_t recording_id, bool live);

  /// `header` has type, flags, times, numbers; the rest is filled in. Errors: kSystem; then nothing
  /// was written that a reader would take for a chunk. No place below `offset`: a place that a
  /// killed sealer reserved may reach beyond the file's end.
  void begin_at(uint64_t offset) { end_ = std::max(end_, offset); }
  Result<ChunkRef> write(format::ChunkHeader header, std::string_view payload);

 private:
  Result<uint64_t> claim(uint64_t bytes);

  File* file_;
  uint64_t recording_id_;
  bool live_;
  uint64_t end_ = 0;
};

}  // namespace gpumemprof

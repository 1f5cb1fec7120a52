// All streams of one file: chunks and buffers combined, definitions read.
#pragma once

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <map>
#include <vector>

#include "base/file.h"
#include "recording/chunk_scan.h"
#include "recording/modules.h"
#include "recording/process_entries.h"
#include "recording/raw_stream.h"
#include "recording/sealed_payload.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Not thread-safe. The file and the tables must outlive it.
class RawFile {
 public:
  /// `threads` is read and extended: a stream with sealed events has its thread there.
  RawFile(File* file, const format::FileHeader& header, Tables* tables, uint32_t process,
          StreamThreads* threads);

  /// Reads the current content of the file. Buffers are copied before the second scan for chunks,
  /// so that a half that is written out meanwhile is found as a chunk and a stream never has a gap.
  /// Cheap to repeat. Errors: kSystem.
  Status refresh();

  /// The places of these chunks may be reused: the next refresh() scans them again. The streams
  /// keep them until they drop them.
  void forget(const std::vector<ChunkRef>& chunks);

  const FileIndex& index() const { return index_; }
  FileIndex& index() { return index_; }
  /// By stream number. Lanes keep pointers into it until the next refresh().
  std::map<uint32_t, RawStream>& streams() { return streams_; }
  RawStream& stream(uint32_t id);
  /// Whether a thread may still write to the stream, as of the last refresh().
  bool is_in_buffer(uint32_t stream) const {
    return odd_stages_ > 0 || in_buffers_.contains(stream);
  }
  RawLosses& losses() { return losses_; }
  uint64_t unreadable_stages() const { return odd_stages_; }
  /// Chunks of an unknown type that must not be ignored.
  uint64_t unknown_chunks() const { return unknown_chunks_; }
  uint64_t damaged_definitions() const;
  uint64_t unknown_stacks() const;

 private:
  struct StageCopy {
    uint64_t offset;
    uint32_t stream = 0, tid = 0;
    uint32_t definitions_sequence = 0;
    std::string definitions;
    StageHalf half;
  };
  bool copy_stage(const ChunkRef& chunk, StageCopy* copy);
  bool copy_stage_once(const ChunkRef& chunk, StageCopy* copy);
  void take_definitions(const StageCopy& copy);
  /// By stream and sequence.
  using ChunksBySequence = absl::flat_hash_map<std::pair<uint32_t, uint64_t>, const ChunkRef*>;
  void take_halves(std::vector<StageCopy> copies);
  void take_half(StageCopy copy, const ChunksBySequence& written);
  void name_thread(RawStream* stream, uint32_t tid);

  File* file_;
  uint64_t recording_id_;
  Tables* tables_;
  uint32_t process_;
  ProcessEntries entries_;
  StreamThreads* threads_;
  ModuleList modules_;
  FileIndex index_;
  std::map<uint32_t, RawStream> streams_;
  absl::flat_hash_map<uint64_t, bool> taken_;  // offsets of chunks that were looked at
  absl::flat_hash_set<uint32_t> in_buffers_;   // streams
  RawLosses losses_;
  uint64_t odd_stages_ = 0;
  uint64_t unknown_chunks_ = 0;
};

}  // namespace gpumemprof

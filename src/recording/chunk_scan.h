// Which chunks a file holds, and which of its bytes cannot be read. Knows nothing of what is in a
// chunk.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "format/format.h"

namespace gpumemprof {

struct ChunkRef {
  uint64_t offset;  ///< of the header
  format::ChunkHeader header;
  uint64_t payload_offset() const { return offset + sizeof(format::ChunkHeader); }
  /// Where the next chunk may begin.
  uint64_t end() const {
    return offset + format::round_to_page(sizeof(format::ChunkHeader) + header.length);
  }
};

struct Damage {
  uint64_t offset;
  uint64_t bytes;
  std::string reason;
};

/// What a scan found. `chunks` is ordered by offset; every CRC in it was right when it was scanned.
struct FileIndex {
  std::vector<ChunkRef> chunks;
  std::vector<Damage> damage;
  /// Pages that were still zero or half written: a live writer may fill them yet. {from, to}
  std::vector<std::pair<uint64_t, uint64_t>> unwritten;
  uint64_t scanned_end = format::kPage;
};

/// The header of the file: magic, version, CRC. Errors: kBadInput, kUnsupported; they name the
/// file.
Result<format::FileHeader> read_file_header(File& file);

/// The part of the first page that changes; zeros where it cannot be read. Hints, never facts.
format::FileState read_file_state(File& file);
/// The same of what has been written; zeros also where the writer's minor does not have it.
format::FileCounts read_file_counts(File& file);

/// Where a finished file ends and what is in it, under a CRC; nothing where it does not say so.
std::optional<format::FinishedFile> read_finished(File& file, uint64_t recording_id);
/// Says it. Errors: kSystem.
Status write_finished(File& file, uint64_t recording_id, uint64_t bytes, uint64_t events);

/// Looks at what was unwritten before and at what the file has gained, up to its size now. Offsets
/// below kPage are never touched. Errors: kSystem where the file cannot be read at all.
Status scan_chunks(File& file, uint64_t recording_id, FileIndex* index);

/// The payload of a chunk, its CRC checked again: a live file is sealed and given back while we
/// read. Errors: kBadInput with the offset.
Result<std::string> read_chunk(File& file, const ChunkRef& chunk);
/// The same into a buffer that is used again and again.
Status read_chunk_into(File& file, const ChunkRef& chunk, std::string* payload);

}  // namespace gpumemprof

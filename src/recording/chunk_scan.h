// Which chunks a file has, and which of its bytes cannot be read. Independent of the chunks'
// content.
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
  uint64_t first_ordinal() const { return header.first_ordinal; }
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

/// The result of a scan. `chunks` is ordered by offset; every CRC in it was right when it was
/// scanned.
struct FileIndex {
  std::vector<ChunkRef> chunks;
  std::vector<Damage> damage;
  /// Pages that were still zero or incomplete: a live writer may fill them. {from, to}
  std::vector<std::pair<uint64_t, uint64_t>> unwritten;
  uint64_t scanned_end = format::kPage;
};

/// The header of the file: magic, version, CRC. Errors: kBadInput, kUnsupported; they name the
/// file.
Result<format::FileHeader> read_file_header(File& file);

/// The part of the first page that changes; zeros if it cannot be read. Only hints.
format::FileState read_file_state(File& file);
/// The counts of what has been written; zeros also if the writer's minor version lacks them.
format::FileCounts read_file_counts(File& file);

/// The place of the process in its job, under a CRC; empty in files from before it was stored.
std::optional<format::JobPlace> read_job_place(File& file, uint64_t recording_id);

/// The end and event count of a finished file, under a CRC; empty if it has none.
std::optional<format::FinishedFile> read_finished(File& file, uint64_t recording_id);
/// Writes it. Errors: kSystem.
Status write_finished(File& file, uint64_t recording_id, uint64_t bytes, uint64_t events);

/// Scans what was unwritten before and what the file has gained, up to its current size. Offsets
/// below kPage are never used. Errors: kSystem if the file cannot be read at all.
Status scan_chunks(File& file, uint64_t recording_id, FileIndex* index);

/// The payload of a chunk, its CRC checked again, because a live file is sealed and freed while it
/// is read. Errors: kBadInput with the offset.
Result<std::string> read_chunk(File& file, const ChunkRef& chunk);
/// The same into a reused buffer.
Status read_chunk_into(File& file, const ChunkRef& chunk, std::string* payload);

}  // namespace gpumemprof

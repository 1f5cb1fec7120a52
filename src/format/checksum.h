// The two CRCs of a file, the same for writer and reader.
#pragma once

#include <stddef.h>

#include "base/crc32c.h"
#include "format/format.h"

namespace gpumemprof::format {

/// Of a chunk: the header with crc32c = 0, then `length` bytes of payload. `payload` is null for
/// kStage, whose payload changes all the time.
inline uint32_t chunk_crc(ChunkHeader header, const void* payload) {
  header.crc32c = 0;
  uint32_t crc = crc32c(0, &header, sizeof(header));
  return payload ? crc32c(crc, payload, header.length) : crc;
}

/// Of the file header: everything before the field itself.
inline uint32_t header_crc(const FileHeader& header) {
  return crc32c(0, &header, offsetof(FileHeader, crc32c));
}

/// Of what the first page says of a finished file.
inline uint32_t finished_crc(uint64_t recording_id, const FinishedFile& finished) {
  const uint64_t words[3] = {recording_id, finished.bytes, finished.events};
  return crc32c(0, words, sizeof(words));
}

/// Of the process's place in its job.
inline uint32_t job_crc(uint64_t recording_id, const JobPlace& place) {
  return crc32c(crc32c(0, &recording_id, sizeof(recording_id)), &place,
                offsetof(JobPlace, crc32c));
}

}  // namespace gpumemprof::format

// For targets whose files are chunks with checksums: the mutator puts the CRCs right again, else
// nothing would get past them. Included by one file of a target.
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "format/checksum.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 8 == 0 || size < gpumemprof::format::kPage)
    return size;  // now and then a file with wrong CRCs
  auto* header = reinterpret_cast<gpumemprof::format::FileHeader*>(data);
  memcpy(header->magic, gpumemprof::format::kFileMagic, sizeof(header->magic));
  header->major = gpumemprof::format::kMajor;
  header->header_bytes = gpumemprof::format::kPage;
  header->crc32c = gpumemprof::format::header_crc(*header);
  for (size_t at = gpumemprof::format::kPage;
       at + sizeof(gpumemprof::format::ChunkHeader) <= size;) {
    gpumemprof::format::ChunkHeader chunk;
    memcpy(&chunk, data + at, sizeof(chunk));
    size_t left = size - at - sizeof(chunk);
    if (chunk.magic != gpumemprof::format::kChunkMagic || chunk.length > left) {
      at += gpumemprof::format::kPage;
      continue;
    }
    chunk.recording_id = header->recording_id;
    bool header_only =
        chunk.type == gpumemprof::format::kStage || chunk.type == gpumemprof::format::kZero;
    chunk.crc32c =
        gpumemprof::format::chunk_crc(chunk, header_only ? nullptr : data + at + sizeof(chunk));
    memcpy(data + at, &chunk, sizeof(chunk));
    at += gpumemprof::format::round_to_page(sizeof(chunk) + chunk.length);
  }
  return size;
}

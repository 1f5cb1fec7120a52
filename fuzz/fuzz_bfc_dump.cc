// Memory dumps of TensorFlow, on any bytes: sums agree with one another, and there is a verdict.
#include <stdint.h>
#include <stdlib.h>

#include <string>

#include "analysis/oom_message/oom_pool.h"
#include "analysis/oom_message/oom_verdict.h"
#include "readers/bfc_dump/read.h"
#include "readers/memory_file.h"
#include "work_limit.h"

using namespace gpumemprof;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const WorkLimit limit(size);
  MemoryFile file(std::string(reinterpret_cast<const char*>(data), size));
  auto pool = read_bfc_dump(file);
  if (!pool) {
    if (pool.error().offset.value_or(size + 1) > size) abort();
    return 0;
  }
  const PoolPicture picture = picture_of(*pool);
  if (picture.bytes != picture.bytes_in_use + picture.free_bytes) abort();
  if (picture.chunks_in_use + picture.free_chunks != pool->chunks.size()) abort();
  if (picture.largest_free_bytes > picture.free_bytes) abort();
  if (picture.unasked_bytes && picture.unasked_bytes->most > picture.bytes_in_use) abort();
  const OomVerdict verdict = explain_oom(message_of_dump(std::move(*pool)), false);
  return verdict.advice.empty() || verdict.summary.empty() ? abort(), 0 : 0;
}

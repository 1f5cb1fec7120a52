// Reads tensorflow.MemoryDump: the state of a pool, which TensorFlow writes to TF_BFC_MEMORY_DUMP
// when the pool runs out.
#pragma once

#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "readers/bfc_pool.h"
#include "trace/event_source.h"

namespace gpumemprof {

/// Errors: kSystem, kBadInput with the byte; so is a dump of more than kMostBfcChunks chunks.
Result<BfcPool> read_bfc_dump(File& file);

/// A dump as a stream of kind "tensorflow_bfc_dump": every chunk in use is live before the first
/// event, and one event of kind snapshot says so, since it is a moment and not a history. Sizes are
/// those of the chunks. Errors: as read_bfc_dump().
Result<std::unique_ptr<EventSource>> read_bfc_dump_source(File& file);

/// The pool behind such a source; null for every other.
std::shared_ptr<const BfcPool> pool_of(const EventSource& source);

/// Whether a file that begins with `bytes` is one: the name of an allocator, then its first bin.
/// 512 bytes are enough.
bool looks_like_bfc_dump(std::string_view bytes);
/// The same of a file; false where it cannot be read.
bool is_bfc_dump(const std::string& path);

}  // namespace gpumemprof

// What a pool of TensorFlow's looks like at one moment: what is free, in which pieces, and what the
// chunks in use hold.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/oom_message/byte_range.h"
#include "readers/bfc_pool.h"

namespace gpumemprof {

struct Analysis;  // analysis/analysis.h

/// Chunks of 256 bytes times a power of two and more, less than the next bin's. The last of the 21
/// has no upper end. A request is looked for in its own bin and those above.
struct PoolBin {
  uint64_t least_bytes = 0;
  uint64_t chunks = 0, chunks_in_use = 0;
  uint64_t bytes = 0, bytes_in_use = 0;
  uint64_t largest_free_bytes = 0;
};

/// Chunks in use that are alike.
struct PoolHolder {
  uint64_t size_bytes = 0;  ///< of each; by size only
  std::string operation;    ///< by operation only; empty: not told
  uint64_t chunks = 0;
  uint64_t bytes = 0;
};

struct PoolPicture {
  uint64_t bytes = 0;  ///< what the pool has taken of the device: the sum of its chunks
  uint64_t bytes_in_use = 0, chunks_in_use = 0;
  uint64_t free_bytes = 0, free_chunks = 0;
  uint64_t largest_free_bytes = 0;
  /// Regions are never joined, and no chunk reaches over their border. Where the file does not
  /// list them they are told apart by gaps between addresses, so there may be more.
  uint64_t regions = 0;
  bool are_regions_listed = false;
  std::optional<ByteRange> growth_bytes;   ///< the limit less `bytes`
  std::optional<ByteRange> unasked_bytes;  ///< in chunks in use, beyond what was asked for
  std::vector<PoolBin> bins;               ///< those that hold chunks, smallest first
  std::vector<PoolHolder> by_size;         ///< all, most bytes first
  std::vector<PoolHolder> by_operation;    ///< all, most bytes first; empty where none is told
};

PoolPicture picture_of(const BfcPool& pool);

/// Gives the only device of `analysis` its pool and adds to `analysis->findings`: what the pool
/// holds and in which pieces it is free, how much of what is in use was never asked for, and a
/// higher peak of before. Evidence in bytes and counts.
void add_pool(std::shared_ptr<const BfcPool> pool, Analysis* analysis);

}  // namespace gpumemprof

// A pool of TensorFlow's best-fit allocator with coalescing at one moment: what a memory dump
// holds, and what the allocator prints when it runs out. docs/tensorflow-files.md says which figure
// comes from where.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "readers/printed_size.h"

namespace gpumemprof {

/// A piece of the pool. Its neighbours are those in front of it and behind it in BfcPool::chunks.
struct BfcChunk {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  /// What was asked for, of a chunk in use; absent in logs, which do not print it.
  std::optional<uint64_t> requested_bytes;
  uint32_t operation = 0;  ///< index in BfcPool::operations; 0: not told
  bool in_use = false;
};

struct BfcPool {
  std::string allocator;          ///< "GPU_0_bfc"
  std::vector<BfcChunk> chunks;   ///< region by region, each by address
  std::vector<uint64_t> regions;  ///< their sizes in bytes; empty where the file does not tell
  std::vector<std::string> operations = {""};  ///< names; only builds for debugging tell them
  uint64_t more_chunks = 0;                    ///< beyond kMostBfcChunks: counted, not kept
  bool is_complete = false;                    ///< the end was seen, so every chunk is here

  std::optional<PrintedSize> limit;   ///< the most that the pool may take
  std::optional<PrintedSize> in_use;  ///< as the allocator itself counts it
  std::optional<PrintedSize> peak_in_use;
  std::optional<PrintedSize> largest_allocation;
  std::optional<uint64_t> allocations;  ///< since the program began
  /// What was asked for of all chunks in use; printed by bins, so a range where it comes from a
  /// log.
  std::optional<PrintedSize> requested;
};
inline constexpr size_t kMostBfcChunks = 1 << 20;
/// Chunks and requests are multiples of this.
inline constexpr uint64_t kBfcUnitBytes = 256;

}  // namespace gpumemprof

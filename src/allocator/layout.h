// What lies where in a simulated allocator: the free blocks, and what keeps a segment from going.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/simulator.h"

namespace gpumemprof {

/// The free blocks that one kind of request can be served from.
struct FreeListSummary {
  uint16_t pool = 0;
  uint16_t stream = 0;
  bool is_large = false;
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  uint64_t largest_bytes = 0;
};

/// All free memory of the simulated allocator at one moment.
struct FreeMemory {
  std::vector<FreeListSummary> lists;  ///< by pool, stream, small before large
  /// Blocks and bytes by size: [i] holds sizes from 2^i to below 2^(i+1).
  std::array<uint64_t, 64> blocks_by_log2{};
  std::array<uint64_t, 64> bytes_by_log2{};
  uint64_t largest_bytes = 0;
  uint64_t cache_slack_bytes = 0;  ///< whole free segments and pages: empty_cache gives them back
  uint64_t fragmented_bytes = 0;   ///< free parts of segments that live blocks pin
};
FreeMemory free_memory(const Simulator& simulator);

/// One cudaMalloc, or one contiguous mapped range of an expandable segment, with its blocks.
struct SegmentView {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t active_bytes = 0;        ///< allocated, or waiting for a stream
  uint64_t largest_free_bytes = 0;  ///< 0: no free block
  uint16_t stream = 0;
  uint16_t pool = 0;
  bool is_large = false;
  bool is_expandable = false;
  uint32_t stack = 0;
  std::vector<BlockId> blocks;  ///< by address, free ones too
};
/// By address.
std::vector<SegmentView> segments(const Simulator& simulator);
/// How many those are.
size_t count_segments(const Simulator& simulator);

/// What a request needs in one piece: the size that it asks for, as its release rounds it.
uint64_t rounded_bytes(const Simulator& simulator, const Simulator::Request& request);
/// In all free blocks that may serve a request, as far as their pool, stream and class go. O(1).
uint64_t free_bytes(const Simulator& simulator, const Simulator::Request& request);

/// The free block that would serve a request as it is, if the cache were searched now; 0: none.
uint64_t fitting_bytes(const Simulator& simulator, const Simulator::Request& request);

/// Why a request of that kind cannot be served from the cache: the free bytes are enough, but in
/// pieces. `pinned` are the segments that would serve it were their live blocks elsewhere, those
/// with the fewest live bytes first.
struct Obstacle {
  uint64_t rounded_bytes = 0;         ///< as rounded_bytes() has it
  uint64_t largest_usable_bytes = 0;  ///< largest free block that the request may use
  uint64_t free_bytes = 0;            ///< as free_bytes() has it
  uint64_t releasable_bytes = 0;      ///< what empty_cache would give back, all pools together
  std::vector<SegmentView> pinned;
  /// The segment with the largest free block that would do, but serves another pool, stream or
  /// class of sizes alone.
  std::optional<SegmentView> elsewhere;
};
/// O(blocks): for single moments.
Obstacle obstacle(const Simulator& simulator, const Simulator::Request& request);

}  // namespace gpumemprof

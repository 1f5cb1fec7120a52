// The inside of the simulator, shared by simulator*.cc and by the replay, which has to start in the
// middle of a history. Nobody else includes it.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "allocator/free_set.h"
#include "allocator/simulator.h"
#include "base/large_pages.h"

namespace gpumemprof {

/// The free blocks that serve one stream's requests of one class (small or large) in one pool.
struct FreeList {
  uint16_t pool = 0;
  uint16_t stream = 0;
  bool is_large = false;
  uint64_t page_bytes = 0;  ///< of expandable segments of this class
  FreeSet free;
  uint64_t free_bytes = 0;        ///< of all of them
  uint64_t releasable_bytes = 0;  ///< of them; see AllocatorStatistics::releasable
  absl::btree_set<std::pair<uint64_t, BlockId>> unmapped;  ///< by address
};

/// In State::list_index.
inline uint64_t list_key(uint16_t pool, uint16_t stream, bool is_large) {
  return uint64_t{pool} << 17 | uint64_t{stream} << 1 | (is_large ? 1 : 0);
}

/// A piece of a segment that was there before the first event.
struct SeedBlock {
  uint64_t address = 0;
  uint64_t size_bytes = 0;
  uint64_t requested_bytes = 0;
  uint32_t stack = 0;
  SimulatedBlock::State state = SimulatedBlock::State::kFree;
};

/// Of any real trace a thousandth is enough.
inline constexpr uint64_t kMostSteps = 1'000'000'000;

struct Simulator::State {
  using BlockState = SimulatedBlock::State;

  State(const AllocatorConfig& config, const Release& release, AddressSource* addresses);

  // simulator.cc
  BlockId malloc(const Request& request);
  bool free_requested(BlockId id);
  bool free_completed(BlockId id);
  FreeList& list_for(uint16_t pool, uint16_t stream, bool is_large, uint32_t* index);
  FreeSet::Iterator best_fit(const FreeList& list, uint64_t size_bytes) const;
  BlockId find_free(FreeList& list, uint64_t size_bytes);
  BlockId new_segment(FreeList& list, uint32_t list_index, uint64_t size_bytes, uint32_t stack);
  bool splits(const FreeList& list, uint64_t block_bytes, uint64_t size_bytes) const;
  void hand_out(BlockId id, uint64_t size_bytes, const Request& request);
  void free_block(BlockId id);
  void complete_early(BlockId id);

  // Blocks, segments and the lists they are in.
  BlockId new_block(uint64_t address, uint64_t size_bytes, uint32_t segment, BlockState state);
  void drop_block(BlockId id);
  /// Puts `id` between `left` and what followed it (left = kNoBlock: in front of `right`).
  void link_after(BlockId left, BlockId id);
  void link_before(BlockId right, BlockId id);
  void put_free(BlockId id);
  void take_free(BlockId id);
  void put_unmapped(BlockId id);
  void take_unmapped(BlockId id);
  void merge_neighbours(BlockId id);
  bool absorb(BlockId id, BlockId neighbour, bool is_left);
  uint64_t releasable_bytes(const SimulatedBlock& block) const;
  /// Sums up the free blocks of a list: `block` is put into its own, or leaves it.
  void add_to_sums(const SimulatedBlock& block);
  void subtract_from_sums(const SimulatedBlock& block);
  FreeKey key_of(BlockId id) const;
  FreeList& list_of(BlockId id) { return *lists[blocks[id].list]; }
  uint32_t add_segment(const SimulatedSegment& segment);
  void drop_segment(uint32_t index);
  void log(DriverCall::Kind kind, uint64_t address, uint64_t size_bytes);

  // simulator_release.cc
  bool collects_garbage() const;
  void collect_garbage();
  bool release_available(FreeList& list, uint64_t size_bytes);
  void release_all();
  void release_segment(BlockId id);
  void unmap(BlockId id);

  // simulator_expandable.cc
  BlockId expand(FreeList& list, uint32_t list_index, uint64_t size_bytes, uint32_t stack);
  BlockId find_expandable(const FreeList& list, uint64_t size_bytes);
  /// Whether `request` gets the block that begins at `address` only where it tries again.
  bool only_a_retry_takes(uint64_t address, const Request& request);
  BlockId new_range(FreeList& list, uint32_t list_index, uint64_t size_bytes, uint32_t stack);
  bool map(BlockId* id, uint64_t size_bytes);

  // simulator_seed.cc
  /// A segment with its blocks, by address and without gaps.
  void seed(const SimulatedSegment& segment, std::span<const SeedBlock> pieces);
  std::optional<uint32_t> segment_at(uint64_t address) const;
  /// The block that `address` lies in; work is bounded by `kMaxWalk` over a replay.
  BlockId block_at(uint64_t address);
  /// What the record says was given back, given back. False where it was not wholly free.
  bool release_recorded(uint64_t address, uint64_t size_bytes);
  bool unmap_recorded(uint64_t address, uint64_t size_bytes);
  bool map_recorded(uint64_t address, uint64_t size_bytes);
  /// An allocation where the record has it. kNoBlock where that place is not free.
  BlockId malloc_at(uint64_t address, const Request& request);

  AllocatorConfig config;
  Release release;
  AddressSource* addresses;
  std::unique_ptr<AddressSource> own_addresses;
  AllocatorStatistics statistics;
  uint64_t capacity_bytes;              // never above kMostBytes, so that sums cannot overflow
  std::optional<uint64_t> limit_bytes;  // by the memory fraction
  uint64_t device_bytes = 0;            // taken from the device, as the driver rounds
  std::vector<SimulatedBlock, LargePages<SimulatedBlock>> blocks;  // [0] is no block
  std::vector<BlockId> unused_blocks;
  std::vector<SimulatedSegment> segments;
  std::vector<uint32_t> unused_segments;
  absl::btree_map<uint64_t, uint32_t> segments_by_address;
  std::vector<std::unique_ptr<FreeList>> lists;
  absl::flat_hash_map<uint64_t, uint32_t> list_index;
  uint64_t last_list_key = ~0ull;
  uint32_t last_list = 0;
  absl::flat_hash_map<uint32_t, uint64_t> lookups;  // pool << 1 | large: searches so far
  std::vector<bool> released_pools;
  std::vector<BlockId> pending;  // may hold ids that are pending no longer
  uint64_t pending_count = 0;
  uint32_t blocks_made = 0;
  uint32_t segments_made = 0;
  uint64_t walked_blocks = 0;
  mutable uint64_t steps = 0, most_steps = kMostSteps;
  bool gave_up() const { return steps > most_steps; }
  bool over_free_memory = false;  // in the call of malloc() that is under way
  bool keep_calls = false;
  std::vector<DriverCall> calls;
};

inline constexpr uint64_t kSmallBlockBytes = kMiB;
inline constexpr uint64_t kDriverPageBytes = 2 * kMiB;
inline constexpr uint64_t kMostBytes = 1ull << 60;

inline uint64_t round_up_to(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace gpumemprof

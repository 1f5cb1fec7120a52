// What the simulator gives back to the driver: garbage collection, retries, empty_cache.
#include <algorithm>

#include "allocator/simulator_state.h"

namespace gpumemprof {

/// The threshold is a share of the memory that the fraction allows; without one it does nothing.
bool Simulator::State::collects_garbage() const {
  return config.garbage_collection_threshold > 0 && config.memory_fraction.has_value();
}

/// Whole free large segments that were passed over longest, until enough is back. As in PyTorch
/// the age bound is the mean age of what is left, worked out anew after each round.
void Simulator::State::collect_garbage() {
  if (!limit_bytes) return;
  const auto threshold = static_cast<uint64_t>(config.garbage_collection_threshold *
                                               static_cast<double>(*limit_bytes));
  if (statistics.reserved.current <= threshold) return;
  const uint64_t target = statistics.reserved.current - threshold;
  const uint64_t now = lookups[1];  // the default pool's large blocks
  std::vector<BlockId> candidates;
  double total_age = 0;
  for (const auto& list : lists) {
    if (list->pool != 0 || !list->is_large) continue;
    for (const FreeKey& key : list->free) {
      ++steps;
      const SimulatedBlock& block = blocks[key.block];
      if (block.previous != kNoBlock || block.next != kNoBlock) continue;
      candidates.push_back(key.block);
      total_age += static_cast<double>(now - block.lookups_before);
    }
  }
  uint64_t released = 0;
  bool any = true;
  size_t left = candidates.size();
  while (released < target && any && left > 0 && !gave_up()) {
    steps += candidates.size();
    const double bound = total_age / static_cast<double>(left);
    any = false;
    std::erase_if(candidates, [&](BlockId id) {
      const auto age = static_cast<double>(now - blocks[id].lookups_before);
      if (blocks[id].is_expandable || age < bound) return false;
      any = true;
      released += blocks[id].size_bytes;
      total_age -= age;
      --left;
      release_segment(id);
      return true;
    });
  }
}

/// Only with max_split_size: one free block that is large enough goes back, else the largest ones
/// above the limit until their sum would do.
bool Simulator::State::release_available(FreeList& list, uint64_t size_bytes) {
  if (config.max_split_size_bytes == kUnlimited) return false;
  const uint64_t wanted = std::max(size_bytes, config.max_split_size_bytes);
  const auto is_expandable = [this](const FreeKey& key) { return blocks[key.block].is_expandable; };
  auto at = list.free.at_least(wanted);
  while (at != list.free.end() && is_expandable(*at)) ++at, ++steps;
  if (at != list.free.end()) {
    release_segment(at->block);
    return true;
  }
  uint64_t released = 0;
  std::vector<BlockId> going;
  while (at != list.free.begin() && released < wanted) {
    --at;
    ++steps;
    if (at->size_bytes < config.max_split_size_bytes) break;
    if (is_expandable(*at)) continue;
    released += at->size_bytes;
    going.push_back(at->block);
  }
  for (BlockId id : going) release_segment(id);
  return released >= wanted;
}

void Simulator::State::release_all() {
  // Waiting for the streams completes every free that was requested.
  for (size_t i = 0; pending_count > 0 && i < pending.size(); ++i) {
    if (blocks[pending[i]].state == BlockState::kPendingFree) complete_early(pending[i]);
  }
  pending.clear();
  if (statistics.releasable.current == 0) return;
  std::vector<BlockId> going;
  for (const bool is_large : {true, false}) {
    for (size_t i = 0; i < lists.size(); ++i) {
      const FreeList& list = *lists[i];
      ++steps;
      if (list.releasable_bytes == 0) continue;
      const bool may_go =
          list.pool == 0 || (list.pool < released_pools.size() && released_pools[list.pool]);
      if (list.is_large != is_large || !may_go) continue;
      going.clear();
      for (const FreeKey& key : list.free) {
        ++steps;
        if (releasable_bytes(blocks[key.block]) > 0) going.push_back(key.block);
      }
      for (BlockId id : going) {
        if (blocks[id].is_expandable) {
          unmap(id);
        } else {
          release_segment(id);
        }
      }
    }
  }
}

/// cudaFree of a free block that is a whole segment; another one is left alone.
void Simulator::State::release_segment(BlockId id) {
  const SimulatedBlock block = blocks[id];
  if (block.previous != kNoBlock || block.next != kNoBlock) return;
  take_free(id);
  statistics.reserved.subtract(block.size_bytes);
  statistics.segments.subtract(1);
  device_bytes -= round_up_to(block.size_bytes, kDriverPageBytes);
  log(DriverCall::Kind::kSegmentFree, block.address, block.size_bytes);
  addresses->free_segment(block.address, block.size_bytes);
  drop_segment(block.segment);
  drop_block(id);
}

/// The whole pages inside a free block of an expandable segment. What is left of it at both ends
/// stays free; a range without any page left is dropped.
void Simulator::State::unmap(BlockId id) {
  const uint32_t segment = blocks[id].segment;
  const uint64_t base = segments[segment].address;
  const uint64_t page = list_of(id).page_bytes;
  const uint64_t block_begin = blocks[id].address;
  const uint64_t block_end = block_begin + blocks[id].size_bytes;
  const uint64_t begin = base + round_up_to(block_begin - base, page);
  const uint64_t end = base + (block_end - base) / page * page;
  if (end <= begin) return;
  take_free(id);
  if (begin > block_begin) {
    const BlockId left = new_block(block_begin, begin - block_begin, segment, BlockState::kFree);
    link_before(id, left);
    put_free(left);
  }
  if (end < block_end) {
    const BlockId right = new_block(end, block_end - end, segment, BlockState::kFree);
    link_after(id, right);
    put_free(right);
  }
  blocks[id].address = begin;
  blocks[id].size_bytes = end - begin;
  blocks[id].state = BlockState::kUnmapped;
  statistics.reserved.subtract(end - begin);
  device_bytes -= end - begin;
  log(DriverCall::Kind::kUnmap, begin, end - begin);
  merge_neighbours(id);
  if (blocks[id].previous == kNoBlock && blocks[id].next == kNoBlock) {
    drop_segment(segment);
    drop_block(id);
  } else {
    put_unmapped(id);
  }
}

}  // namespace gpumemprof

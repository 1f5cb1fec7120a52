// The simulator's blocks and segments: how they are made, linked, listed and merged.
#include "allocator/simulator_state.h"

namespace gpumemprof {

BlockId Simulator::State::new_block(uint64_t address, uint64_t size_bytes, uint32_t segment,
                                    BlockState state) {
  BlockId id = kNoBlock;
  if (unused_blocks.empty()) {
    id = static_cast<BlockId>(blocks.size());
    blocks.emplace_back();
  } else {
    id = unused_blocks.back();
    unused_blocks.pop_back();
  }
  blocks[id] = {.address = address,
                .size_bytes = size_bytes,
                .segment = segment,
                .made = blocks_made++,
                .segment_made = segments[segment].made,
                .list = segments[segment].list,
                .is_expandable = segments[segment].is_expandable,
                .state = state};
  return id;
}

void Simulator::State::drop_block(BlockId id) {
  blocks[id].state = BlockState::kUnused;
  unused_blocks.push_back(id);
}

void Simulator::State::link_after(BlockId left, BlockId id) {
  const BlockId right = blocks[left].next;
  blocks[id].previous = left;
  blocks[id].next = right;
  blocks[left].next = id;
  if (right != kNoBlock) blocks[right].previous = id;
}

void Simulator::State::link_before(BlockId right, BlockId id) {
  const BlockId left = blocks[right].previous;
  blocks[id].next = right;
  blocks[id].previous = left;
  blocks[right].previous = id;
  if (left != kNoBlock) {
    blocks[left].next = id;
  } else {
    segments[blocks[right].segment].first = id;
  }
}

FreeKey Simulator::State::key_of(BlockId id) const {
  const SimulatedBlock& block = blocks[id];
  const uint32_t age = release.ties == TieRule::kBlockAge     ? block.made
                       : release.ties == TieRule::kSegmentAge ? block.segment_made
                                                              : 0;
  return {block.size_bytes, age, id, block.address};
}

/// Of a free block: what could go back to the driver by itself.
uint64_t Simulator::State::releasable_bytes(const SimulatedBlock& block) const {
  if (!block.is_expandable) {
    return block.previous == kNoBlock && block.next == kNoBlock ? block.size_bytes : 0;
  }
  const SimulatedSegment& segment = segments[block.segment];
  const uint64_t page = lists[segment.list]->page_bytes;
  const uint64_t begin = round_up_to(block.address - segment.address, page);
  const uint64_t end = (block.address - segment.address + block.size_bytes) / page * page;
  return end > begin ? end - begin : 0;
}

void Simulator::State::add_to_sums(const SimulatedBlock& block) {
  const uint64_t bytes = releasable_bytes(block);
  FreeList& list = *lists[block.list];
  statistics.releasable.add(bytes);
  list.releasable_bytes += bytes;
  list.free_bytes += block.size_bytes;
}

void Simulator::State::subtract_from_sums(const SimulatedBlock& block) {
  const uint64_t bytes = releasable_bytes(block);
  FreeList& list = *lists[block.list];
  statistics.releasable.subtract(bytes);
  list.releasable_bytes -= bytes;
  list.free_bytes -= block.size_bytes;
}

void Simulator::State::put_free(BlockId id) {
  SimulatedBlock& block = blocks[id];
  block.state = BlockState::kFree;
  FreeList& list = list_of(id);
  if (collects_garbage()) {
    block.lookups_before = lookups[uint32_t{list.pool} << 1 | (list.is_large ? 1 : 0)];
  }
  add_to_sums(block);
  list.free.insert(key_of(id));
}

void Simulator::State::take_free(BlockId id) {
  subtract_from_sums(blocks[id]);
  list_of(id).free.erase(key_of(id));
}

void Simulator::State::put_unmapped(BlockId id) {
  blocks[id].state = BlockState::kUnmapped;
  list_of(id).unmapped.insert({blocks[id].address, id});
}

void Simulator::State::take_unmapped(BlockId id) {
  list_of(id).unmapped.erase({blocks[id].address, id});
}

/// `id`, which is in no list, takes over a neighbour of its own state. Its object stays.
bool Simulator::State::absorb(BlockId id, BlockId neighbour, bool is_left) {
  if (neighbour == kNoBlock || blocks[neighbour].state != blocks[id].state) return false;
  if (blocks[id].state == BlockState::kFree) {
    take_free(neighbour);
  } else if (blocks[id].state == BlockState::kUnmapped) {
    take_unmapped(neighbour);
  } else {
    return false;
  }
  SimulatedBlock& block = blocks[id];
  const SimulatedBlock& other = blocks[neighbour];
  block.size_bytes += other.size_bytes;
  if (is_left) {
    block.address = other.address;
    block.previous = other.previous;
    if (block.previous != kNoBlock) {
      blocks[block.previous].next = id;
    } else {
      segments[block.segment].first = id;
    }
  } else {
    block.next = other.next;
    if (block.next != kNoBlock) blocks[block.next].previous = id;
  }
  drop_block(neighbour);
  return true;
}

void Simulator::State::merge_neighbours(BlockId id) {
  absorb(id, blocks[id].previous, true);
  absorb(id, blocks[id].next, false);
}

uint32_t Simulator::State::add_segment(const SimulatedSegment& segment) {
  uint32_t index = 0;
  if (unused_segments.empty()) {
    index = static_cast<uint32_t>(segments.size());
    segments.push_back(segment);
  } else {
    index = unused_segments.back();
    unused_segments.pop_back();
    segments[index] = segment;
  }
  segments[index].made = segments_made++;
  segments_by_address.insert_or_assign(segment.address, index);
  return index;
}

void Simulator::State::drop_segment(uint32_t index) {
  const auto found = segments_by_address.find(segments[index].address);
  if (found != segments_by_address.end() && found->second == index)
    segments_by_address.erase(found);
  segments[index].first = kNoBlock;
  unused_segments.push_back(index);
}

void Simulator::State::log(DriverCall::Kind kind, uint64_t address, uint64_t size_bytes) {
  if (keep_calls) calls.push_back({kind, address, size_bytes});
}

}  // namespace gpumemprof

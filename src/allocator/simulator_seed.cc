// Starting a simulator in the middle of a history, and making it follow one where the record
// knows better: what the driver and the program decided, and the place of a block that was not
// foreseen.
#include "allocator/simulator_state.h"

namespace gpumemprof {
namespace {

// A replay looks for blocks by address only where the record departs from the rules, or for a few
// hundred unmapped ranges. A hostile file cannot make it walk for longer than about a second.
constexpr uint64_t kMaxWalk = 200'000'000;

}  // namespace

void Simulator::State::seed(const SimulatedSegment& segment, std::span<const SeedBlock> pieces) {
  SimulatedSegment made = segment;
  const FreeList& list = list_for(made.pool, made.stream, made.is_large, &made.list);
  (void)list;
  const uint32_t index = add_segment(made);
  if (!made.is_expandable) statistics.segments.add(1);
  BlockId last = kNoBlock;
  for (const SeedBlock& piece : pieces) {
    const BlockId id = new_block(piece.address, piece.size_bytes, index, piece.state);
    if (last == kNoBlock) {
      segments[index].first = id;
    } else {
      link_after(last, id);
    }
    last = id;
    if (piece.state == BlockState::kUnmapped) {
      put_unmapped(id);
      continue;
    }
    device_bytes += piece.size_bytes;
    statistics.reserved.add(piece.size_bytes);
    if (piece.state == BlockState::kFree) continue;
    blocks[id].requested_bytes = piece.requested_bytes;
    blocks[id].stack = piece.stack;
    if (piece.state == BlockState::kAllocated) {
      statistics.allocated.add(piece.size_bytes);
    } else {
      ++pending_count;
      pending.push_back(id);
    }
    statistics.active.add(piece.size_bytes);
    statistics.requested.add(piece.requested_bytes);
  }
  // Only now, as what can be released depends on both neighbours.
  for (BlockId id = segments[index].first; id != kNoBlock; id = blocks[id].next) {
    if (blocks[id].state == BlockState::kFree) put_free(id);
  }
}

std::optional<uint32_t> Simulator::State::segment_at(uint64_t address) const {
  auto above = segments_by_address.upper_bound(address);
  if (above == segments_by_address.begin()) return std::nullopt;
  const uint32_t index = std::prev(above)->second;
  if (address - segments[index].address >= segments[index].size_bytes) return std::nullopt;
  return index;
}

BlockId Simulator::State::block_at(uint64_t address) {
  const std::optional<uint32_t> segment = segment_at(address);
  if (!segment) return kNoBlock;
  for (BlockId id = segments[*segment].first; id != kNoBlock; id = blocks[id].next) {
    if (++walked_blocks > kMaxWalk) return kNoBlock;
    if (address - blocks[id].address < blocks[id].size_bytes) return id;
  }
  return kNoBlock;
}

bool Simulator::State::release_recorded(uint64_t address, uint64_t size_bytes) {
  const auto found = segments_by_address.find(address);
  if (found == segments_by_address.end()) return false;
  const SimulatedSegment& segment = segments[found->second];
  const SimulatedBlock& block = blocks[segment.first];
  const bool whole = !segment.is_expandable && block.state == BlockState::kFree &&
                     block.next == kNoBlock && block.size_bytes == size_bytes;
  if (whole) release_segment(segment.first);
  return whole;
}

bool Simulator::State::unmap_recorded(uint64_t address, uint64_t size_bytes) {
  const BlockId id = block_at(address);
  if (id == kNoBlock || blocks[id].state != BlockState::kFree) return false;
  const SimulatedSegment& segment = segments[blocks[id].segment];
  if (!segment.is_expandable || releasable_bytes(blocks[id]) != size_bytes) return false;
  const uint64_t page = lists[segment.list]->page_bytes;
  const uint64_t first = segment.address + round_up_to(blocks[id].address - segment.address, page);
  if (first != address) return false;
  unmap(id);
  return true;
}

bool Simulator::State::map_recorded(uint64_t address, uint64_t size_bytes) {
  BlockId id = block_at(address);
  if (id == kNoBlock || blocks[id].state != BlockState::kUnmapped) return false;
  if (blocks[id].address != address || blocks[id].size_bytes < size_bytes) return false;
  return map(&id, size_bytes);
}

BlockId Simulator::State::malloc_at(uint64_t address, const Request& request) {
  const BlockId id = block_at(address);
  if (id == kNoBlock || blocks[id].state != BlockState::kFree) return kNoBlock;
  if (request.requested_bytes > kMostBytes) return kNoBlock;
  const uint64_t size = round_size(request.requested_bytes, config, release);
  const uint64_t before = address - blocks[id].address;
  if (blocks[id].size_bytes - before < size) return kNoBlock;
  take_free(id);
  if (before > 0) {
    const BlockId left =
        new_block(blocks[id].address, before, blocks[id].segment, BlockState::kFree);
    link_before(id, left);
    blocks[id].address = address;
    blocks[id].size_bytes -= before;
    put_free(left);
  }
  hand_out(id, size, request);
  return id;
}

}  // namespace gpumemprof

// Expandable segments: a range of addresses for each list, of which pages are mapped as needed.
#include <algorithm>

#include "allocator/simulator_state.h"

namespace gpumemprof {

/// A free block of at least `size_bytes` that is in no list, after mapping what was missing.
BlockId Simulator::State::expand(FreeList& list, uint32_t list_index, uint64_t size_bytes,
                                 uint32_t stack) {
  BlockId id = find_expandable(list, size_bytes);
  if (id == kNoBlock) id = new_range(list, list_index, size_bytes, stack);
  if (id == kNoBlock) return kNoBlock;
  if (blocks[id].state == BlockState::kUnmapped &&
      !map(&id, std::min(blocks[id].size_bytes, size_bytes))) {
    return kNoBlock;
  }
  while (blocks[id].size_bytes < size_bytes) {
    const uint64_t missing = size_bytes - blocks[id].size_bytes;
    BlockId next = blocks[id].next;
    // What was mapped before a refusal stays, as a free block.
    if (next == kNoBlock || blocks[next].state != BlockState::kUnmapped ||
        !map(&next, std::min(missing, blocks[next].size_bytes))) {
      return kNoBlock;
    }
    id = next;
  }
  take_free(id);
  return id;
}

/// The lowest place where free and unmapped neighbours together are large enough.
BlockId Simulator::State::find_expandable(const FreeList& list, uint64_t size_bytes) {
  for (const auto& [address, unmapped] : list.unmapped) {
    if (gave_up()) return kNoBlock;
    const BlockId previous = blocks[unmapped].previous;
    const bool starts_before = previous != kNoBlock && blocks[previous].state == BlockState::kFree;
    const BlockId first = starts_before ? previous : unmapped;
    uint64_t bytes = 0;
    for (BlockId id = first; id != kNoBlock && bytes < size_bytes; id = blocks[id].next) {
      ++steps;
      if (blocks[id].state != BlockState::kFree && blocks[id].state != BlockState::kUnmapped) break;
      bytes += blocks[id].size_bytes;
    }
    if (bytes >= size_bytes) return first;
  }
  return kNoBlock;
}

/// With a limit for splitting a block may be too large to serve a request, and when its pages are
/// unmapped what is left of it at both ends is not. Who tries again takes the lowest of such ends,
/// who only now begins to look takes the one that fits best.
bool Simulator::State::only_a_retry_takes(uint64_t address, const Request& request) {
  if (!config.expandable_segments || request.requested_bytes > kMostBytes) return false;
  const uint64_t size = round_size(request.requested_bytes, config, release);
  uint32_t index = 0;
  const FreeList& list = list_for(request.pool, request.stream, size > kSmallBlockBytes, &index);
  const auto best = best_fit(list, size);
  if (best == list.free.end() || best->address == address) return false;
  const BlockId lowest = find_expandable(list, size);
  return lowest != kNoBlock && blocks[lowest].address == address;
}

/// PyTorch reserves nine eighths of the device's memory; a request above that is never served.
BlockId Simulator::State::new_range(FreeList& list, uint32_t list_index, uint64_t size_bytes,
                                    uint32_t stack) {
  const uint64_t page = list.page_bytes;
  uint64_t range = config.capacity_bytes ? capacity_bytes + capacity_bytes / 8
                                         : std::max(kAmpleRangeBytes, size_bytes);
  if (config.reserve_bytes) range = std::min(range, *config.reserve_bytes);
  if (config.reserve_share && config.capacity_bytes) {
    const double bytes = *config.reserve_share * static_cast<double>(capacity_bytes);
    range = std::min(range, static_cast<uint64_t>(std::min(bytes, 0x1p60)));
  }
  range = round_up_to(range, page);
  if (size_bytes > range) return kNoBlock;
  const uint32_t segment = add_segment({.address = addresses->place_range(range),
                                        .size_bytes = range,
                                        .stack = stack,
                                        .stream = list.stream,
                                        .pool = list.pool,
                                        .is_large = list.is_large,
                                        .is_expandable = true,
                                        .list = list_index});
  const BlockId id = new_block(segments[segment].address, range, segment, BlockState::kUnmapped);
  segments[segment].first = id;
  put_unmapped(id);
  return id;
}

/// Maps the pages of the first `size_bytes` of an unmapped block and joins them to their free
/// neighbours: `*id` is the block they are in then, in its list. False: the device is full.
bool Simulator::State::map(BlockId* id, uint64_t size_bytes) {
  const uint32_t segment = blocks[*id].segment;
  const uint64_t page = list_of(*id).page_bytes;
  const uint64_t bytes = std::min(round_up_to(size_bytes, page), blocks[*id].size_bytes);
  if (device_bytes + bytes > capacity_bytes) {
    log(DriverCall::Kind::kRefused, 0, bytes);
    return false;
  }
  device_bytes += bytes;
  take_unmapped(*id);
  if (bytes < blocks[*id].size_bytes) {
    const BlockId rest = new_block(blocks[*id].address + bytes, blocks[*id].size_bytes - bytes,
                                   segment, BlockState::kUnmapped);
    link_after(*id, rest);
    blocks[*id].size_bytes = bytes;
    put_unmapped(rest);
  }
  log(DriverCall::Kind::kMap, blocks[*id].address, bytes);
  blocks[*id].state = BlockState::kFree;
  merge_neighbours(*id);
  put_free(*id);
  statistics.reserved.add(bytes);
  return true;
}

}  // namespace gpumemprof

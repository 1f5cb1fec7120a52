#include "allocator/simulator.h"

#include <algorithm>

#include "allocator/driver_addresses.h"
#include "allocator/simulator_state.h"

namespace gpumemprof {
Simulator::State::State(const AllocatorConfig& config_, const Release& release_,
                        AddressSource* addresses_)
    : config(config_),
      release(release_),
      addresses(addresses_),
      capacity_bytes(std::min(config_.capacity_bytes.value_or(kMostBytes), kMostBytes)) {
  if (addresses == nullptr) {
    own_addresses = std::make_unique<RisingAddresses>();
    addresses = own_addresses.get();
  }
  if (config.memory_fraction && config.capacity_bytes) {
    limit_bytes =
        static_cast<uint64_t>(*config.memory_fraction * static_cast<double>(capacity_bytes));
  }
  blocks.resize(1);
}

FreeList& Simulator::State::list_for(uint16_t pool, uint16_t stream, bool is_large,
                                     uint32_t* index) {
  const uint64_t key = list_key(pool, stream, is_large);
  if (key != last_list_key) {
    const auto [found, is_new] = list_index.try_emplace(key, static_cast<uint32_t>(lists.size()));
    if (is_new) {
      lists.push_back(std::make_unique<FreeList>());
      FreeList& list = *lists.back();
      list.pool = pool;
      list.stream = stream;
      list.is_large = is_large;
      list.page_bytes = is_large ? config.large_segment_bytes : kDriverPageBytes;
    }
    last_list_key = key;
    last_list = found->second;
  }
  *index = last_list;
  return *lists[last_list];
}

BlockId Simulator::State::malloc(const Request& request) {
  if (gave_up()) [[unlikely]]
    return kNoBlock;
  // Sizes come from files; nothing that large was ever served.
  if (request.requested_bytes > kMostBytes) {
    ++statistics.num_ooms;
    return kNoBlock;
  }
  const uint64_t size = round_size(request.requested_bytes, config, release);
  uint32_t index = 0;
  FreeList& list = list_for(request.pool, request.stream, size > kSmallBlockBytes, &index);
  BlockId id = request.tries_again ? kNoBlock : find_free(list, size);
  if (id == kNoBlock) [[unlikely]] {
    if (collects_garbage()) collect_garbage();
    over_free_memory = false;
    id = new_segment(list, index, size, request.stack);
    if (over_free_memory && config.throws_at_refusal) return kNoBlock;
    if (id == kNoBlock && release_available(list, size)) {
      id = new_segment(list, index, size, request.stack);
    }
    // Where a pool may be capturing a graph nothing can be waited for, so nothing goes back.
    if (id == kNoBlock && (request.pool == 0 || release.retries_in_pools)) {
      release_all();
      ++statistics.num_alloc_retries;
      id = new_segment(list, index, size, request.stack);
    }
    if (id == kNoBlock) {
      if (!gave_up()) ++statistics.num_ooms;
      return kNoBlock;
    }
  }
  hand_out(id, size, request);
  return id;
}

/// The free block that serves `size_bytes`; the end of the list where none may.
FreeSet::Iterator Simulator::State::best_fit(const FreeList& list, uint64_t size_bytes) const {
  auto best = list.free.at_least(size_bytes);
  if (best == list.free.end()) return best;
  if (blocks[best->block].is_expandable) {
    // A block at the edge of what is mapped can grow: prefer the one that would grow least.
    const auto could_be = [this](BlockId id) {
      const BlockId next = blocks[id].next;
      const bool grows = next != kNoBlock && blocks[next].state == BlockState::kUnmapped;
      return blocks[id].size_bytes + (grows ? blocks[next].size_bytes : 0);
    };
    for (auto next = best;
         ++next != list.free.end() && could_be(next->block) < could_be(best->block);) {
      best = next;
      ++steps;
    }
  }
  const uint64_t bytes = best->size_bytes;
  const uint64_t max_split = config.max_split_size_bytes;
  if (size_bytes < max_split && bytes >= max_split) return list.free.end();
  const uint64_t slack = config.max_non_split_rounding_bytes.value_or(config.large_segment_bytes);
  if (size_bytes >= max_split && bytes - size_bytes >= slack) return list.free.end();
  return best;
}

/// The best fit, taken from its list; kNoBlock where there is none.
BlockId Simulator::State::find_free(FreeList& list, uint64_t size_bytes) {
  if (collects_garbage()) ++lookups[uint32_t{list.pool} << 1 | (list.is_large ? 1 : 0)];
  const auto best = best_fit(list, size_bytes);
  if (best == list.free.end()) return kNoBlock;
  const BlockId id = best->block;
  subtract_from_sums(blocks[id]);
  list.free.erase(best);
  return id;
}

BlockId Simulator::State::new_segment(FreeList& list, uint32_t list_index, uint64_t size_bytes,
                                      uint32_t stack) {
  const uint64_t bytes = segment_size(size_bytes, config);
  if (limit_bytes && statistics.reserved.current + bytes > *limit_bytes) return kNoBlock;
  // The driver is not asked at all; pages that it then refuses to map are another matter.
  if (config.throws_at_refusal && statistics.reserved.current + bytes > capacity_bytes) {
    over_free_memory = true;
    return kNoBlock;
  }
  if (config.expandable_segments) return expand(list, list_index, size_bytes, stack);
  const uint64_t taken = round_up_to(bytes, kDriverPageBytes);
  if (device_bytes + taken > capacity_bytes) {
    log(DriverCall::Kind::kRefused, 0, bytes);
    return kNoBlock;
  }
  device_bytes += taken;
  const uint32_t segment = add_segment({.address = addresses->place_segment(bytes),
                                        .size_bytes = bytes,
                                        .stack = stack,
                                        .stream = list.stream,
                                        .pool = list.pool,
                                        .is_large = list.is_large,
                                        .list = list_index});
  const uint64_t address = segments[segment].address;
  const BlockId id = new_block(address, bytes, segment, BlockState::kFree);
  segments[segment].first = id;
  statistics.reserved.add(bytes);
  statistics.segments.add(1);
  log(DriverCall::Kind::kSegmentAlloc, address, bytes);
  return id;
}

bool Simulator::State::splits(const FreeList& list, uint64_t block_bytes,
                              uint64_t size_bytes) const {
  const uint64_t rest = block_bytes - size_bytes;
  if (!list.is_large || config.expandable_segments) return rest >= 512;
  return size_bytes < config.max_split_size_bytes && rest > kSmallBlockBytes;
}

/// The low part of a free block that is in no list becomes the program's.
void Simulator::State::hand_out(BlockId id, uint64_t size_bytes, const Request& request) {
  FreeList& list = list_of(id);
  if (splits(list, blocks[id].size_bytes, size_bytes)) {
    const BlockId rest =
        new_block(blocks[id].address + size_bytes, blocks[id].size_bytes - size_bytes,
                  blocks[id].segment, BlockState::kFree);
    link_after(id, rest);
    blocks[id].size_bytes = size_bytes;
    // PyTorch makes the new object for the low part; here the low part keeps its id.
    std::swap(blocks[id].made, blocks[rest].made);
    put_free(rest);
  }
  SimulatedBlock& block = blocks[id];
  block.state = BlockState::kAllocated;
  block.requested_bytes = request.requested_bytes;
  block.stack = request.stack;
  statistics.allocated.add(block.size_bytes);
  statistics.active.add(block.size_bytes);
  statistics.requested.add(block.requested_bytes);
}

bool Simulator::State::free_requested(BlockId id) {
  if (id >= blocks.size() || blocks[id].state != BlockState::kAllocated) return false;
  blocks[id].state = BlockState::kPendingFree;
  statistics.allocated.subtract(blocks[id].size_bytes);
  ++pending_count;
  if (pending.size() > 2 * pending_count + 1024) {
    std::erase_if(pending, [&](BlockId b) { return blocks[b].state != BlockState::kPendingFree; });
  }
  pending.push_back(id);
  return true;
}

bool Simulator::State::free_completed(BlockId id) {
  if (id >= blocks.size()) return false;
  switch (blocks[id].state) {
    case BlockState::kCompletedEarly:
      drop_block(id);
      return true;
    case BlockState::kAllocated:
      statistics.allocated.subtract(blocks[id].size_bytes);
      break;
    case BlockState::kPendingFree:
      if (--pending_count == 0) pending.clear();
      break;
    default:
      return false;
  }
  free_block(id);
  return true;
}

void Simulator::State::free_block(BlockId id) {
  statistics.active.subtract(blocks[id].size_bytes);
  statistics.requested.subtract(blocks[id].requested_bytes);
  blocks[id].state = BlockState::kFree;
  merge_neighbours(id);
  put_free(id);
}

/// A retry waited for the streams. The caller's id stays a tombstone until free_completed().
void Simulator::State::complete_early(BlockId id) {
  BlockId twin = kNoBlock;
  if (unused_blocks.empty()) {
    twin = static_cast<BlockId>(blocks.size());
    blocks.emplace_back();
  } else {
    twin = unused_blocks.back();
    unused_blocks.pop_back();
  }
  blocks[twin] = blocks[id];
  SimulatedBlock& block = blocks[twin];
  if (block.previous != kNoBlock) {
    blocks[block.previous].next = twin;
  } else {
    segments[block.segment].first = twin;
  }
  if (block.next != kNoBlock) blocks[block.next].previous = twin;
  blocks[id].state = BlockState::kCompletedEarly;
  --pending_count;
  free_block(twin);
}

Simulator::Simulator(const AllocatorConfig& config, const Release& release,
                     AddressSource* addresses)
    : state_(std::make_unique<State>(config, release, addresses)) {}
Simulator::~Simulator() = default;
Simulator::Simulator(Simulator&&) noexcept = default;
Simulator& Simulator::operator=(Simulator&&) noexcept = default;

BlockId Simulator::malloc(const Request& request) { return state_->malloc(request); }
bool Simulator::free_requested(BlockId block) { return state_->free_requested(block); }
bool Simulator::free_completed(BlockId block) { return state_->free_completed(block); }
void Simulator::empty_cache() { state_->release_all(); }
void Simulator::release_pool(uint16_t pool) {
  if (state_->released_pools.size() <= pool) state_->released_pools.resize(pool + 1);
  state_->released_pools[pool] = true;
}

const AllocatorConfig& Simulator::config() const { return state_->config; }
const Release& Simulator::release() const { return state_->release; }
const AllocatorStatistics& Simulator::statistics() const { return state_->statistics; }
const SimulatedBlock& Simulator::block(BlockId id) const {
  return state_->blocks[id < state_->blocks.size() ? id : kNoBlock];
}
uint32_t Simulator::segment_count() const { return static_cast<uint32_t>(state_->segments.size()); }
const SimulatedSegment& Simulator::segment(uint32_t index) const { return state_->segments[index]; }
uint64_t Simulator::steps() const { return state_->steps; }
void Simulator::limit_steps(uint64_t most) { state_->most_steps = most; }
bool Simulator::gave_up() const { return state_->gave_up(); }
void Simulator::keep_driver_calls(bool keep) { state_->keep_calls = keep; }
std::vector<DriverCall>& Simulator::driver_calls() { return state_->calls; }

}  // namespace gpumemprof

#include "recording/device_history.h"

#include <algorithm>
#include <vector>

namespace gpumemprof {
namespace {

// Blocks of up to 1 MiB come from the pool of small ones (kSmallSize in CUDACachingAllocator.cpp).
constexpr uint64_t kMostSmallBytes = 1u << 20;
constexpr size_t kMostIndexes = 1u << 12;  // pools that an AllocatorEvents can tell apart

}  // namespace

DeviceHistory::DeviceHistory(int32_t device, bool has_pools) {
  trace_.device = device;
  trace_.has_times = trace_.has_history = true;
  trace_.has_pools = has_pools;
  trace_.streams = {0};
  trace_.pools = {{0, 0}};
  streams_.emplace(0, 0);
  pools_.emplace(std::pair<int64_t, int64_t>{0, 0}, 0);
}

uint16_t DeviceHistory::stream_index(int64_t stream) {
  const auto [known, added] = streams_.try_emplace(stream, trace_.streams.size());
  if (added) trace_.streams.push_back(stream);
  return known->second;
}

uint16_t DeviceHistory::pool_index(std::pair<int64_t, int64_t> pool) {
  const auto [known, added] = pools_.try_emplace(pool, trace_.pools.size());
  if (added) trace_.pools.push_back(pool);
  return known->second;
}

void DeviceHistory::contradict(const HistoryEvent& event, const char* what) {
  if (!contradiction_.empty()) return;
  contradiction_ = what;
  contradiction_ += " (event " + std::to_string(trace_.events.size()) + " of the device, address " +
                    std::to_string(event.address) + ")";
}

AllocatorEvent DeviceHistory::base(const HistoryEvent& event) {
  return {.address = event.address,
          .size_bytes = event.size_bytes,
          .time_us = event.time_us,
          .stack = event.stack,
          .stream = stream_index(event.detail.stream),
          .pool = pool_index(event.detail.pool),
          .action = event.action};
}

void DeviceHistory::add(const HistoryEvent& event) {
  if (!contradiction_.empty()) return;
  if (streams_.size() >= kMostIndexes || pools_.size() >= kMostIndexes) {
    return contradict(event, "more than 4,096 streams or memory pools");
  }
  if (event.size_bytes > UINT64_MAX - event.address && event.action != Action::kOom) {
    return contradict(event, "a block beyond the address space");
  }
  switch (event.action) {
    case Action::kAlloc:
      return allocate(event);
    case Action::kFreeRequested:
      return free(event);
    case Action::kFreeCompleted:
      return complete(event);
    case Action::kSegmentAlloc:
    case Action::kSegmentMap:
      return add_range(event, event.action == Action::kSegmentMap);
    case Action::kSegmentFree:
    case Action::kSegmentUnmap:
      return remove_range(event);
    case Action::kOom: {
      if (!event.detail.has_device_free)
        return contradict(event, "a refused request without its segment");
      AllocatorEvent refused = base(event);
      refused.address = event.detail.device_free_bytes;
      return trace_.events.append(refused);
    }
    case Action::kSnapshot:
      return;
  }
}

DeviceHistory::Ranges::iterator DeviceHistory::range_at(uint64_t address) {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return ranges_.end();
  --after;
  return address < after->second.end ? after : ranges_.end();
}

void DeviceHistory::allocate(const HistoryEvent& event) {
  const auto range = range_at(event.address);
  if (range == ranges_.end() || event.address + event.size_bytes > range->second.end) {
    return contradict(event, "a block outside every segment");
  }
  range->second.is_large = event.size_bytes > kMostSmallBytes;
  AllocatorEvent made = base(event);
  made.size_bytes = event.requested_bytes;
  const Live block{
      event.size_bytes, event.requested_bytes, event.stack, made.stream, made.pool, false};
  if (!live_.try_emplace(event.address, block).second) {
    return contradict(event, "a block over a live one");
  }
  trace_.events.append(made);
}

void DeviceHistory::free(const HistoryEvent& event) {
  const auto known = live_.find(event.address);
  if (known == live_.end() || known->second.is_pending) {
    return contradict(event, "a free of an unknown block");
  }
  AllocatorEvent freed = base(event);
  freed.size_bytes = known->second.requested_bytes;
  freed.stream = known->second.stream, freed.pool = known->second.pool;
  if (freed.stack == 0) freed.stack = known->second.stack;  // as PyTorch's own history does
  trace_.events.append(freed);
  if (event.detail.is_delayed_free) {
    known->second.is_pending = true;
    return;
  }
  freed.action = Action::kFreeCompleted;
  trace_.events.append(freed);
  live_.erase(known);
}

void DeviceHistory::complete(const HistoryEvent& event) {
  const auto known = live_.find(event.address);
  if (known == live_.end() || !known->second.is_pending) {
    return contradict(event, "a completed free without a request");
  }
  AllocatorEvent freed = base(event);
  freed.size_bytes = known->second.requested_bytes;
  freed.stream = known->second.stream, freed.pool = known->second.pool;
  freed.stack = known->second.stack;
  trace_.events.append(freed);
  live_.erase(known);
}

/// Mapped ranges that touch are one segment, as snapshots list them.
void DeviceHistory::add_range(const HistoryEvent& event, bool is_expandable) {
  const AllocatorEvent made = base(event);
  uint64_t begin = event.address, end = event.address + event.size_bytes;
  auto after = ranges_.lower_bound(begin);
  const bool overlaps_next = after != ranges_.end() && after->first < end;
  const bool overlaps_before = range_at(begin) != ranges_.end();
  if (event.size_bytes == 0 || overlaps_next || overlaps_before) {
    return contradict(event, "overlapping segments");
  }
  trace_.events.append(made);
  Range range{end, event.stack, made.stream, made.pool, is_expandable, false};
  const auto joins = [&](const Range& other) {
    return is_expandable && other.is_expandable && other.stream == range.stream &&
           other.pool == range.pool;
  };
  if (after != ranges_.end() && after->first == end && joins(after->second)) {
    range.end = after->second.end, range.is_large = after->second.is_large;
    after = ranges_.erase(after);
  }
  if (after != ranges_.begin()) {
    --after;
    if (after->second.end == begin && joins(after->second)) {
      after->second.end = range.end;
      return;
    }
  }
  ranges_.emplace(begin, range);
}

void DeviceHistory::remove_range(const HistoryEvent& event) {
  const auto known = range_at(event.address);
  const uint64_t end = event.address + event.size_bytes;
  const bool is_whole = event.action == Action::kSegmentFree;
  if (known == ranges_.end() || end > known->second.end || event.size_bytes == 0 ||
      known->second.is_expandable == is_whole ||
      (is_whole && (known->first != event.address || known->second.end != end))) {
    return contradict(event, "a release of memory that is not there");
  }
  const uint64_t begin = known->first;
  const Range range = known->second;
  AllocatorEvent gone = base(event);
  gone.stream = range.stream, gone.pool = range.pool;
  trace_.events.append(gone);
  ranges_.erase(known);
  if (begin < event.address) {
    ranges_[begin] = range;
    ranges_[begin].end = event.address;
  }
  if (end < range.end) ranges_[end] = range;
}

void DeviceHistory::add_block(const AllocatorBlock& block, AllocatorSegment* segment) const {
  if (block.size_bytes == 0) return;
  segment->blocks.push_back(block);
  if (block.state == BlockState::kFree) return;
  segment->active_bytes += block.size_bytes;
  segment->requested_bytes += block.requested_bytes;
  if (block.state == BlockState::kAllocated) segment->allocated_bytes += block.size_bytes;
}

AllocatorSegment DeviceHistory::segment_of(uint64_t begin, const Range& range) const {
  AllocatorSegment segment;
  segment.address = begin, segment.size_bytes = range.end - begin;
  segment.stack = range.stack, segment.stream = range.stream, segment.pool = range.pool;
  segment.is_large = range.is_large, segment.is_expandable = range.is_expandable;
  return segment;
}

AllocatorTrace DeviceHistory::finish() {
  std::vector<uint64_t> addresses;
  for (const auto& [address, block] : live_) addresses.push_back(address);
  std::ranges::sort(addresses);
  size_t next = 0;
  for (const auto& [begin, range] : ranges_) {
    AllocatorSegment segment = segment_of(begin, range);
    uint64_t at = begin;
    // Free neighbours are always merged, so between two live blocks lies one free block or none.
    for (; next < addresses.size() && addresses[next] < range.end; ++next) {
      const Live& block = live_.at(addresses[next]);
      if (addresses[next] < at) continue;
      add_block({.address = at, .size_bytes = addresses[next] - at}, &segment);
      add_block({addresses[next], block.size_bytes, block.requested_bytes, block.stack,
                 block.is_pending ? BlockState::kPendingFree : BlockState::kAllocated},
                &segment);
      at = addresses[next] + block.size_bytes;
    }
    if (at < range.end) add_block({.address = at, .size_bytes = range.end - at}, &segment);
    trace_.segments.push_back(std::move(segment));
  }
  return std::move(trace_);
}

}  // namespace gpumemprof

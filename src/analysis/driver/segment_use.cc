#include "analysis/driver/segment_use.h"

#include <algorithm>

namespace gpumemprof {

template <class Change>
void SegmentUse::for_ranges(uint64_t address, uint64_t bytes, Change change) {
  if (bytes == 0 || address + bytes < address) return;  // no address space is that large
  auto at = ranges_.upper_bound(address);
  if (at != ranges_.begin()) --at;
  for (; at != ranges_.end() && at->first < address + bytes && is_followed(); ++at) {
    ++work_;
    Range& range = at->second;
    const uint64_t begin = std::max(at->first, address);
    const uint64_t end = std::min(at->first + range.bytes, address + bytes);
    if (begin >= end) continue;
    pinned_free_bytes_ -= range.pinned_free();
    change(range, end - begin);
    pinned_free_bytes_ += range.pinned_free();
  }
}

void SegmentUse::range_came(uint64_t address, uint64_t bytes) {
  if (bytes == 0 || address + bytes < address) return;
  range_went(address);
  // What overlaps was given back without our knowing, or is no memory.
  auto next = ranges_.lower_bound(address);
  if (next != ranges_.end() && next->first < address + bytes) return;
  if (next != ranges_.begin() && (--next)->first + next->second.bytes > address) return;
  ranges_[address].bytes = bytes;
}

void SegmentUse::drop(const Range& range) {
  if (range.is_segment) segments_bytes_ -= range.bytes;
  allocated_bytes_ -= range.allocated_bytes;
  pinned_free_bytes_ -= range.pinned_free();
}

void SegmentUse::range_went(uint64_t address) {
  const auto known = ranges_.find(address);
  if (known == ranges_.end()) return;
  drop(known->second);
  ranges_.erase(known);
}

void SegmentUse::forget_ranges() {
  for (const auto& [address, range] : ranges_) drop(range);
  ranges_.clear();
}

void SegmentUse::block_came(uint64_t address, uint64_t bytes) {
  block_freed(address, false);  // its end was missed
  block_went(address);
  blocks_[address] = {bytes, false};
  for_ranges(address, bytes, [&](Range& range, uint64_t part) {
    if (!range.is_segment) segments_bytes_ += range.bytes;
    range.is_segment = true;
    ++range.blocks;
    // Blocks that overlap are of a damaged file: the sums will not agree with the allocator's.
    part = std::min(part, range.bytes - range.allocated_bytes);
    range.allocated_bytes += part, allocated_bytes_ += part;
  });
}

void SegmentUse::block_freed(uint64_t address, bool is_delayed) {
  const auto known = blocks_.find(address);
  if (known == blocks_.end() || known->second.is_waiting) return;
  known->second.is_waiting = true;
  for_ranges(address, known->second.bytes, [&](Range& range, uint64_t part) {
    part = std::min(part, range.allocated_bytes);  // a range that came after the block
    range.allocated_bytes -= part, allocated_bytes_ -= part;
  });
  if (!is_delayed) block_went(address);
}

void SegmentUse::block_went(uint64_t address) {
  const auto known = blocks_.find(address);
  if (known == blocks_.end()) return;
  if (!known->second.is_waiting) return block_freed(address, false);
  for_ranges(address, known->second.bytes, [](Range& range, uint64_t) {
    if (range.blocks != 0) --range.blocks;
  });
  blocks_.erase(known);
}

}  // namespace gpumemprof

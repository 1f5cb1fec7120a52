#include "page/address_space.h"

namespace gpumemprof {
namespace {

bool is_mapped(Action action) {
  return action == Action::kSegmentMap || action == Action::kSegmentUnmap;
}

AddressSpace::Range range_of(const SegmentChange& change) {
  return {change.size_bytes, change.stream, change.pool, is_mapped(change.action)};
}

bool are_one(const AddressSpace::Range& a, const AddressSpace::Range& b) {
  return a.is_expandable && b.is_expandable && a.stream == b.stream && a.pool == b.pool;
}

}  // namespace

void AddressSpace::add(uint64_t address, const Range& range) {
  if (range.size_bytes == 0 || address + range.size_bytes < address) return;
  remove(address, range.size_bytes);  // what a damaged file has twice is there once
  auto at = ranges_.emplace(address, range).first;
  if (const auto next = std::next(at); next != ranges_.end() &&
                                       next->first == address + range.size_bytes &&
                                       are_one(at->second, next->second)) {
    at->second.size_bytes += next->second.size_bytes;
    ranges_.erase(next);
  }
  if (at == ranges_.begin()) return;
  const auto before = std::prev(at);
  if (before->first + before->second.size_bytes != address || !are_one(before->second, at->second))
    return;
  before->second.size_bytes += at->second.size_bytes;
  ranges_.erase(at);
}

void AddressSpace::remove(uint64_t address, uint64_t size_bytes) {
  const uint64_t end = address + size_bytes;
  if (size_bytes == 0 || end < address) return;
  auto at = ranges_.upper_bound(address);
  if (at != ranges_.begin()) --at;
  while (at != ranges_.end() && at->first < end) {
    const auto [begin, range] = *at;
    const uint64_t range_end = begin + range.size_bytes;
    if (range_end <= address) {
      ++at;
      continue;
    }
    at = ranges_.erase(at);
    if (begin < address) {
      Range left = range;
      left.size_bytes = address - begin;
      ranges_.emplace(begin, left);
    }
    if (range_end > end) {
      Range right = range;
      right.size_bytes = range_end - end;
      ranges_.emplace(end, right);
      return;
    }
  }
}

void AddressSpace::apply(const SegmentChange& change) {
  if (change.action == Action::kSegmentAlloc || change.action == Action::kSegmentMap)
    add(change.address, range_of(change));
  else
    remove(change.address, change.size_bytes);
}

void AddressSpace::undo(const SegmentChange& change) {
  if (change.action == Action::kSegmentAlloc || change.action == Action::kSegmentMap)
    remove(change.address, change.size_bytes);
  else
    add(change.address, range_of(change));
}

AddressSpace space_at(const BlockTable& table, uint32_t moment) {
  AddressSpace space;
  for (const SegmentChange& listed : table.end_segments) space.apply(listed);
  // Backwards from the end if the final state is known, otherwise forwards from nothing.
  if (table.has_end_segments) {
    for (auto change = table.segments.rbegin();
         change != table.segments.rend() && change->moment > moment; ++change)
      space.undo(*change);
    return space;
  }
  for (const SegmentChange& change : table.segments) {
    if (change.moment > moment) break;
    space.apply(change);
  }
  return space;
}

}  // namespace gpumemprof

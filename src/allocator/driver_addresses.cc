#include "allocator/driver_addresses.h"

#include <algorithm>
#include <iterator>

#include "allocator/simulator_state.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kRegionBytes = 32 << 20;
/// The first region of a process has 8 MiB of the context's own, and this much is left of it. It is
/// there from the second segment on.
constexpr uint64_t kContextHoleBytes = 24 << 20;
/// Sizes looked at for a segment: a region has holes of 15. A file can be made with one for each segment.
constexpr int kMostSizes = 1024;

}  // namespace

uint64_t RisingAddresses::place_segment(uint64_t size_bytes) {
  const uint64_t address = next_segment_;
  next_segment_ += round_up_to(size_bytes, kDriverPageBytes) + kDriverPageBytes;
  return address;
}

uint64_t RisingAddresses::place_range(uint64_t size_bytes) {
  next_range_ = round_up_to(next_range_, kDriverPageBytes);
  const uint64_t address = next_range_;
  next_range_ += size_bytes + (1ull << 30);
  return address;
}

uint64_t FallingAddresses::place_segment(uint64_t size_bytes) {
  const uint64_t bytes = round_up_to(size_bytes, kDriverPageBytes);
  if (const uint64_t address = find_hole(bytes)) {
    take(holes_.find(address), address, bytes);
    return address;
  }
  const bool is_first = regions_.empty();
  const uint64_t address = place_in_region(bytes);
  if (is_first) add_hole(kTop + kRegionBytes - kContextHoleBytes, kContextHoleBytes);
  return address;
}

uint64_t FallingAddresses::find_hole(uint64_t bytes) const {
  uint64_t lowest = 0;
  int looks = 0;
  for (auto size = by_size_.lower_bound(bytes); size != by_size_.end() && looks < kMostSizes; ++size, ++looks)
    if (const uint64_t address = *size->second.begin(); lowest == 0 || address < lowest) lowest = address;
  return lowest;
}

void FallingAddresses::add_hole(uint64_t address, uint64_t bytes) {
  const bool is_new = holes_.emplace(address, bytes).second;
  if (is_new) by_size_[bytes].insert(address);  // a file may free a segment twice
}

FallingAddresses::Holes::iterator FallingAddresses::remove_hole(Holes::iterator hole) {
  const auto size = by_size_.find(hole->second);
  size->second.erase(hole->first);
  if (size->second.empty()) by_size_.erase(size);
  return holes_.erase(hole);
}

void FallingAddresses::take(Holes::iterator hole, uint64_t address, uint64_t bytes) {
  const auto [begin, room] = *hole;
  const uint64_t end = begin + room;
  remove_hole(hole);
  if (address > begin) add_hole(begin, address - begin);
  if (end > address + bytes) add_hole(address + bytes, end - address - bytes);
}

uint64_t FallingAddresses::place_in_region(uint64_t bytes) {
  const uint64_t region_bytes = round_up_to(bytes, kRegionBytes);
  lowest_ -= region_bytes;
  regions_.insert(lowest_);
  if (region_bytes > bytes) add_hole(lowest_ + bytes, region_bytes - bytes);
  return lowest_;
}

bool FallingAddresses::follow(uint64_t address, uint64_t size_bytes) {
  const uint64_t bytes = round_up_to(size_bytes, kDriverPageBytes);
  const uint64_t hole = find_hole(bytes);
  const uint64_t told = hole != 0 ? hole : lowest_ - round_up_to(bytes, kRegionBytes);
  if (const auto after = holes_.upper_bound(address); after != holes_.begin()) {
    const auto before = std::prev(after);
    const uint64_t end = before->first + before->second;
    if (bytes <= before->second && address <= end - bytes) {
      take(before, address, bytes);
      return told == address;
    }
  }
  const uint64_t region_bytes = round_up_to(bytes, kRegionBytes);
  if (address % kRegionBytes != 0 || region_bytes > kMostBytes - address) return false;
  const uint64_t below = regions_.empty() ? address : std::min(lowest_, address);
  lowest_ = address + region_bytes;
  place_in_region(bytes);
  lowest_ = below;
  return told == address;
}

void FallingAddresses::free_segment(uint64_t address, uint64_t size_bytes) {
  uint64_t begin = address;
  uint64_t bytes = round_up_to(size_bytes, kDriverPageBytes);
  auto after = holes_.upper_bound(address);
  if (after != holes_.end() && after->first == address + bytes && !regions_.contains(after->first)) {
    bytes += after->second;
    after = remove_hole(after);
  }
  if (after != holes_.begin() && !regions_.contains(address)) {
    const auto before = std::prev(after);
    if (before->first + before->second == address) {
      begin = before->first;
      bytes += before->second;
      remove_hole(before);
    }
  }
  add_hole(begin, bytes);
}

std::unique_ptr<AddressSource> driver_addresses(const AllocatorTrace& trace) {
  FallingAddresses like_the_driver;
  size_t count = 0, told = 0;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const AllocatorEvent event = trace.events[i];
    if (event.action == Action::kSegmentFree) {
      like_the_driver.free_segment(event.address, event.size_bytes);
    } else if (event.action == Action::kSegmentAlloc) {
      told += like_the_driver.follow(event.address, event.size_bytes), ++count;
    }
  }
  if (2 * told > count) return std::make_unique<FallingAddresses>();
  return std::make_unique<RisingAddresses>();
}

}  // namespace gpumemprof

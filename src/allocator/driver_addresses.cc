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
/// Looked at for a segment: a file can be made with a hole for each, and work for their square.
constexpr int kMostHoles = 1024;

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
  if (const auto hole = find_hole(bytes); hole != holes_.end()) {
    const auto [address, room] = *hole;
    holes_.erase(hole);
    if (room > bytes) holes_.emplace(address + bytes, room - bytes);
    return address;
  }
  const bool is_first = regions_.empty();
  const uint64_t address = place_in_region(bytes);
  if (is_first) holes_.emplace(kTop + kRegionBytes - kContextHoleBytes, kContextHoleBytes);
  return address;
}

FallingAddresses::Holes::iterator FallingAddresses::find_hole(uint64_t bytes) {
  int looks = 0;
  for (auto hole = holes_.begin(); hole != holes_.end() && looks < kMostHoles; ++hole, ++looks)
    if (hole->second >= bytes) return hole;
  return holes_.end();
}

uint64_t FallingAddresses::place_in_region(uint64_t bytes) {
  const uint64_t region_bytes = round_up_to(bytes, kRegionBytes);
  lowest_ -= region_bytes;
  regions_.insert(lowest_);
  if (region_bytes > bytes) holes_.emplace(lowest_ + bytes, region_bytes - bytes);
  return lowest_;
}

bool FallingAddresses::follow(uint64_t address, uint64_t size_bytes) {
  const uint64_t bytes = round_up_to(size_bytes, kDriverPageBytes);
  const auto first = find_hole(bytes);
  const uint64_t told =
      first != holes_.end() ? first->first : lowest_ - round_up_to(bytes, kRegionBytes);
  if (const auto after = holes_.upper_bound(address); after != holes_.begin()) {
    const auto [hole, room] = *std::prev(after);
    const uint64_t end = hole + room;
    if (bytes <= room && address <= end - bytes) {
      holes_.erase(std::prev(after));
      if (address > hole) holes_.emplace(hole, address - hole);
      if (end > address + bytes) holes_.emplace(address + bytes, end - address - bytes);
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
  uint64_t bytes = round_up_to(size_bytes, kDriverPageBytes);
  auto after = holes_.upper_bound(address);
  if (after != holes_.end() && after->first == address + bytes && !regions_.contains(after->first)) {
    bytes += after->second;
    after = holes_.erase(after);
  }
  if (after != holes_.begin() && !regions_.contains(address)) {
    const auto before = std::prev(after);
    if (before->first + before->second == address) {
      before->second += bytes;
      return;
    }
  }
  holes_.emplace(address, bytes);
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

// The figures of each stack on one device.
#pragma once

#include <cstdint>
#include <vector>

#include "base/growing_column.h"
#include "base/large_pages.h"
#include "base/prefetch.h"
#include "trace/address_map.h"

namespace gpumemprof {

/// The figures of one stack on one device.
struct Site {
  uint64_t live_bytes = 0;
  uint64_t live_count = 0;
  uint64_t total_bytes = 0;  ///< allocated over the whole stream
  uint64_t total_count = 0;
  uint64_t peak_bytes =
      0;  ///< what it held at the device's peak; read it through holders_at_peak()
  uint64_t peak_count = 0;
  uint64_t peak_epoch = 0;
};

/// Sites by stack id, in the order in which they were first asked for. A program's stacks are made
/// one after the other, so ids lie in groups of 16, one cache line each, and the groups in a map:
/// most nodes of the stack tree never allocate, and a damaged checkpoint that names stack 4 billion
/// costs one group. References end with every new site. Not thread-safe.
class SiteTable {
 public:
  struct Entry {
    uint32_t stack = 0;
    Site site;
  };

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  const Entry* begin() const { return entries_.begin(); }
  const Entry* end() const { return entries_.end(); }
  void reserve(size_t sites) { entries_.reserve(sites); }

  /// Made where there is none.
  Site& operator[](uint32_t stack) {
    uint32_t& after = place(stack);
    if (after == 0) [[unlikely]] {
      *entries_.extend(1) = {.stack = stack};
      after = static_cast<uint32_t>(entries_.size());
    }
    return entries_[after - 1].site;
  }
  /// Null where there is none.
  const Site* find(uint32_t stack) const {
    const uint32_t after = place_of(stack);
    return after == 0 ? nullptr : &entries_[after - 1].site;
  }
  void prefetch(uint32_t stack) const {
    if (const uint32_t after = place_of(stack); after != 0)
      prefetch_line(&entries_[after - 1]);
  }

 private:
  static constexpr uint32_t kGroupIds = 16;
  struct alignas(64) Group {
    uint32_t after[kGroupIds] = {};  // one more than the index in entries_; 0: no site
  };

  uint32_t place_of(uint32_t stack) const {
    const uint32_t* group = numbers_.find(stack / kGroupIds);
    return group ? groups_[*group].after[stack % kGroupIds] : 0;
  }
  uint32_t& place(uint32_t stack) {
    const auto next = static_cast<uint32_t>(groups_.size());
    const auto [group, is_new] = numbers_.try_emplace(stack / kGroupIds, next);
    if (is_new) [[unlikely]]
      groups_.push_back({});
    return groups_[*group].after[stack % kGroupIds];
  }

  AddressMap numbers_;  // of groups, by the first id / kGroupIds
  std::vector<Group, LargePages<Group>> groups_;
  GrowingColumn<Entry> entries_;
};

}  // namespace gpumemprof

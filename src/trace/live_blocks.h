// The live blocks of one device by address, each with a number.
#pragma once

#include <cstdint>
#include <vector>

#include "base/large_pages.h"
#include "base/prefetch.h"
#include "trace/address_map.h"

namespace gpumemprof {

/// A block that is live.
struct LiveBlock {
  static constexpr uint64_t kUnknownTime = UINT64_MAX;  ///< live since before the first event
  static constexpr uint64_t kGone = UINT64_MAX - 1;     ///< in DeviceState::numbered: not live
  uint64_t size_bytes;
  uint64_t time_ns;
  uint32_t stack;
  uint32_t thread;
};

/// A block keeps its number while it is live; then the number is given again, so all are below the
/// most that were live at once. Whoever follows blocks beside needs no second search: the numbers
/// go with the events (LiveState::apply_observed). Not thread-safe.
class LiveBlocks {
 public:
  static constexpr uint32_t kNoNumber = UINT32_MAX;

  size_t size() const { return numbers_.size(); }
  bool empty() const { return size() == 0; }
  uint32_t number_count() const { return static_cast<uint32_t>(blocks_.size()); }
  void reserve(size_t count) { numbers_.reserve(count), blocks_.reserve(count); }

  /// kNoNumber if nothing is live there.
  uint32_t number_at(uint64_t address) const {
    const uint32_t* number = numbers_.find(address);
    return number ? *number : kNoNumber;
  }
  /// Null if nothing is live there. Valid until the next put().
  const LiveBlock* find(uint64_t address) const {
    const uint32_t* number = numbers_.find(address);
    return number ? &blocks_[*number] : nullptr;
  }
  LiveBlock& numbered(uint32_t number) { return blocks_[number]; }

  struct Put {
    uint32_t number;
    bool is_new;  ///< otherwise what was live there stays
  };
  Put put(uint64_t address, const LiveBlock& block) {
    const uint32_t next = free_.empty() ? number_count() : free_.back();
    const auto [number, is_new] = numbers_.try_emplace(address, next);
    if (!is_new) return {*number, false};
    if (free_.empty()) {
      blocks_.push_back(block);
    } else {
      free_.pop_back();
      blocks_[next] = block;
    }
    return {next, true};
  }
  /// Ends what is live there: its number, or kNoNumber. The number's block stays as it was until
  /// the next put().
  uint32_t take(uint64_t address) {
    uint32_t* known = numbers_.find(address);
    if (known == nullptr) return kNoNumber;
    const uint32_t number = *known;
    numbers_.erase(known);
    free_.push_back(number);
    return number;
  }
  /// Calls see(address, block) for each, in no particular order.
  template <class See>
  void each(const See& see) const {
    numbers_.for_each([&](uint64_t address, uint32_t number) { see(address, blocks_[number]); });
  }
  /// Calls see(address, number), likewise.
  template <class See>
  void each_number(const See& see) const {
    numbers_.for_each(see);
  }

  /// What will be looked up soon: first the address, some events later its block.
  void prefetch(uint64_t address) const { numbers_.prefetch(address); }
  void prefetch_block(uint64_t address) const {
    if (const uint32_t* number = numbers_.find(address)) prefetch_line(&blocks_[*number]);
  }

 private:
  AddressMap numbers_;
  std::vector<LiveBlock, LargePages<LiveBlock>> blocks_;  // by number
  std::vector<uint32_t> free_;                            // numbers
};

}  // namespace gpumemprof

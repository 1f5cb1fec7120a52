// The allocator's segments at any moment, by address.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "page/block_table.h"

namespace gpumemprof {

/// Ranges that were allocated from the driver. Neighbours in an expandable segment are one range.
class AddressSpace {
 public:
  struct Range {
    uint64_t size_bytes = 0;
    int64_t stream = 0;
    std::pair<int64_t, int64_t> pool{0, 0};
    bool is_expandable = false;
  };
  /// A range that would exceed the last address is ignored.
  void add(uint64_t address, const Range& range);
  void remove(uint64_t address, uint64_t size_bytes);
  void apply(const SegmentChange& change);
  void undo(const SegmentChange& change);
  const std::map<uint64_t, Range>& ranges() const { return ranges_; }

 private:
  std::map<uint64_t, Range> ranges_;
};

/// At a moment, from the first one on. O(changes of segments).
AddressSpace space_at(const BlockTable& table, uint32_t moment);

}  // namespace gpumemprof

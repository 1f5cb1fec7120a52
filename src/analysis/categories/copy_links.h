// Which blocks were copied into which, for as long as they live: so that a copy of a weight is
// known for one, whenever somebody says that the other is a parameter.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace gpumemprof {

/// Not thread-safe. Memory O(blocks with links that live).
class CopyLinks {
 public:
  /// A block by its place; `event` tells it from the next one there.
  struct Block {
    uint32_t device = 0, number = 0;
    uint64_t event = 0;
    bool operator==(const Block&) const = default;
  };
  enum Kind : uint8_t {
    kSource,   ///< the other one was copied into the block
    kTarget,   ///< the block was copied into the other one
    kWatcher,  ///< the other one wants to know what the block is
  };
  struct Link {
    Block other;
    Kind kind;
  };

  /// `block` wants to know what `other` is, which is its source or its target.
  void add(const Block& block, const Block& other, Kind kind) {
    put(block, {other, kind});
    put(other, {block, kWatcher});
  }
  /// Of a block, the last few; null: none.
  const std::vector<Link>* of(const Block& block) const {
    const auto found = links_.find(key(block));
    return found == links_.end() ? nullptr : &found->second;
  }
  /// Its life has ended.
  void forget(const Block& block) { links_.erase(key(block)); }

  bool empty() const { return links_.empty(); }

 private:
  static uint64_t key(const Block& block) { return uint64_t{block.device} << 32 | block.number; }
  void put(const Block& block, const Link& link) {
    constexpr size_t kMost = 16;  // links of one block; the last ones count
    std::vector<Link>& links = links_[key(block)];
    const auto known = std::ranges::find_if(links, [&](const Link& l) {
      return l.kind == link.kind && key(l.other) == key(link.other);
    });
    if (known != links.end()) {
      *known = link;
      return;
    }
    if (links.size() == kMost) links.erase(links.begin());
    links.push_back(link);
  }

  absl::flat_hash_map<uint64_t, std::vector<Link>> links_;
};

}  // namespace gpumemprof

// What blocks add up to, whichever evidence says what they are: what the program told of them, or
// the rules that look at stacks and lives alone.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/categories/category_holder.h"
#include "analysis/categories/snapshot_rules.h"

namespace gpumemprof {

/// What a block is, and by which evidence: what sums are kept by.
class KnownAs {
 public:
  using Key = std::pair<uint64_t, uint32_t>;  // stack << 8 | kind, and what tells it further

  /// `name`: StringTable id, 0 where it has none.
  static KnownAs told(const Verdict& verdict, uint32_t name);
  static KnownAs by_rule(SnapshotRule rule, WorkPhase phase);

  Category category() const { return category_; }
  Key key(uint32_t stack) const { return {uint64_t{stack} << 8 | kind_, detail_}; }
  /// Without bytes.
  CategoryHolder holder(uint32_t stack) const { return holder_of(key(stack)); }
  static CategoryHolder holder_of(const Key& key);

 private:
  KnownAs(Category category, uint8_t kind, uint32_t detail)
      : category_(category), kind_(kind), detail_(detail) {}
  Category category_;
  uint8_t kind_;     // the category and why it is unknown, or that a rule told it
  uint32_t detail_;  // the name, or the rule and its phase
};

/// Bytes and blocks by stack and by what they are.
class HolderSums {
 public:
  /// What was added in another epoch counts no more.
  void add(const KnownAs& is, uint32_t stack, uint64_t bytes, uint64_t epoch = 0) {
    Sum& sum = sums_[is.key(stack)];
    if (sum.epoch != epoch) sum = {0, 0, epoch};
    sum.bytes += bytes, ++sum.count;
  }
  /// Largest first.
  std::vector<CategoryHolder> holders(uint64_t epoch = 0) const;

 private:
  struct Sum {
    uint64_t bytes = 0, count = 0, epoch = 0;
  };
  absl::flat_hash_map<KnownAs::Key, Sum> sums_;
};

uint64_t sum_of_bytes(const std::vector<CategoryHolder>& holders);

/// A stack of calls of a model: does it allocate more in each call than in the one before?
struct GrowingSite {
  uint64_t last_bytes = 0, first_bytes = 0;  ///< `first_bytes`: of the last call's first block
  uint32_t last_call = 0;
  uint32_t rises = 0;  ///< calls in a row, the last one included, whose first block was larger
  /// True where it is the first in another call than the last one was in.
  bool allocate(uint64_t bytes, uint32_t call) {
    const bool is_next = last_bytes != 0 && last_call != call;
    if (is_next) rises = bytes > first_bytes ? rises + 1 : 0;
    if (is_next || last_bytes == 0) first_bytes = bytes;
    last_bytes = bytes, last_call = call;
    return is_next;
  }
};

}  // namespace gpumemprof

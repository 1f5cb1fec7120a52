// The free blocks that serve one kind of request, best fit first.
#pragma once

#include <absl/container/btree_set.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/simulator.h"

namespace gpumemprof {

/// Order of the free blocks of one list: best fit first, then the release's tie rule.
struct FreeKey {
  uint64_t size_bytes;
  uint32_t age;  ///< 0 where the address alone decides
  BlockId block;
  uint64_t address;
  bool operator<(const FreeKey& other) const {
    if (size_bytes != other.size_bytes) return size_bytes < other.size_bytes;
    return age != other.age ? age < other.age : address < other.address;
  }
};

/// Buckets by size, 512 to each power of two, with a bit for each that is not empty: nearly always
/// a search is a few looks at bits and one at a bucket of a few keys. Which way a search through a
/// sorted array or a tree turns cannot be foretold, and the wrong guesses cost more than all else.
/// The first keys of a bucket are a sorted array, those above its limit lie in one tree for all
/// buckets, so that no file makes a change cost more than O(log n).
/// Not thread-safe; iterators are valid until the next change.
class FreeSet {
 public:
  class Iterator {
   public:
    const FreeKey& operator*() const { return *key_; }
    const FreeKey* operator->() const { return key_; }
    Iterator& operator++() {
      key_ = set_->after(key_);
      return *this;
    }
    Iterator& operator--() {
      key_ = key_ == nullptr ? set_->last() : set_->before(key_);
      return *this;
    }
    bool operator==(const Iterator& other) const { return key_ == other.key_; }

   private:
    friend class FreeSet;
    Iterator(const FreeSet* set, const FreeKey* key) : set_(set), key_(key) {}
    const FreeSet* set_;
    const FreeKey* key_;  // null: the end
  };

  bool empty() const {
    return std::ranges::all_of(used_groups_, [](uint64_t groups) { return groups == 0; });
  }
  Iterator begin() const { return {this, first_from(0)}; }
  Iterator end() const { return {this, nullptr}; }
  /// The first block of at least `size_bytes`.
  Iterator at_least(uint64_t size_bytes) const;
  /// Nothing where the key is there already.
  void insert(const FreeKey& key);
  /// Nothing where the key is not there.
  void erase(const FreeKey& key);
  void erase(Iterator at);

 private:
  struct Bucket {
    std::vector<FreeKey> keys;  // the lowest of them
    size_t more = 0;            // in rest_: all of them above those in `keys`
  };
  static constexpr size_t kBucketsOfGroup = 64;
  // Of a size in units of 512 bytes: a bucket for each below 1,024 of them, then 512 for each power
  // of two.
  static constexpr int kBucketBits = 9;
  static constexpr size_t kGroups = 384;
  struct Group {
    uint64_t used = 0;  // a bit for each bucket that is not empty
    std::array<Bucket, kBucketsOfGroup> buckets;
  };

  static size_t bucket_of(uint64_t size_bytes);
  const Bucket& bucket(size_t index) const {
    return groups_[index / kBucketsOfGroup]->buckets[index % kBucketsOfGroup];
  }
  bool is_used_group(size_t group) const;
  bool is_used(size_t index) const;
  void erase_at(size_t index, size_t at);
  void note_empty(size_t index);
  void spill(Bucket* bucket);
  void refill(Bucket* bucket);
  /// The first key of the buckets from `index` on; null where they are all empty.
  const FreeKey* first_from(size_t index) const;
  /// The last key of the buckets below `index`, all of whose keys are below `limit`.
  const FreeKey* last_below(size_t index, const FreeKey* limit) const;
  const FreeKey* after(const FreeKey* key) const;
  const FreeKey* before(const FreeKey* key) const;
  const FreeKey* last() const;

  std::array<uint64_t, kGroups / 64> used_groups_ = {};  // a bit for each group that is not empty
  std::vector<std::unique_ptr<Group>> groups_;           // up to the highest that was ever used
  absl::btree_set<FreeKey> rest_;
};

}  // namespace gpumemprof

#include "allocator/free_set.h"

#include <bit>
#include <iterator>

namespace gpumemprof {
namespace {

constexpr size_t kMostKeys = 64;  // in the array of a bucket

/// The place of `key` in a sorted array: of the first that is not below it.
size_t place_of(const std::vector<FreeKey>& keys, const FreeKey& key) {
  constexpr size_t kFew = 8;
  const FreeKey* at = keys.data();
  size_t count = keys.size();
  while (count > kFew) {
    const size_t half = count / 2;
    if (at[half - 1] < key)
      at += half, count -= half;
    else
      count = half;
  }
  while (count != 0 && *at < key) ++at, --count;
  return static_cast<size_t>(at - keys.data());
}

bool lies_in(const std::vector<FreeKey>& keys, const FreeKey* key) {
  return !keys.empty() && key >= keys.data() && key <= &keys.back();
}

}  // namespace

/// Rises with the size. Real sizes are multiples of 512 bytes, so small ones have their own bucket.
size_t FreeSet::bucket_of(uint64_t size_bytes) {
  const uint64_t units = size_bytes / 512;
  static_assert(((64 - 9 - 1 - kBucketBits + 2) << kBucketBits) <= kGroups * kBucketsOfGroup);
  if (units < size_t{1} << kBucketBits) return units;
  const int shift = std::bit_width(units) - 1 - kBucketBits;
  return (static_cast<size_t>(shift) << kBucketBits) + (units >> shift);
}

bool FreeSet::is_used_group(size_t group) const {
  return (used_groups_[group / 64] >> group % 64 & 1) != 0;
}

bool FreeSet::is_used(size_t index) const {
  const size_t group = index / kBucketsOfGroup;
  return is_used_group(group) && (groups_[group]->used >> index % kBucketsOfGroup & 1) != 0;
}

const FreeKey* FreeSet::first_from(size_t index) const {
  if (index >= kGroups * kBucketsOfGroup) return nullptr;
  size_t group = index / kBucketsOfGroup;
  uint64_t buckets = 0;
  if (is_used_group(group)) buckets = groups_[group]->used & ~0ull << index % kBucketsOfGroup;
  if (buckets == 0) {
    size_t word = group / 64;
    uint64_t above = used_groups_[word] & ~0ull << group % 64 << 1;
    while (above == 0 && ++word < used_groups_.size()) above = used_groups_[word];
    if (above == 0) return nullptr;
    group = word * 64 + static_cast<size_t>(std::countr_zero(above));
    buckets = groups_[group]->used;
  }
  return groups_[group]->buckets[static_cast<size_t>(std::countr_zero(buckets))].keys.data();
}

FreeSet::Iterator FreeSet::at_least(uint64_t size_bytes) const {
  const size_t index = bucket_of(size_bytes);
  if (is_used(index)) {
    const Bucket& in = bucket(index);
    const FreeKey lowest{size_bytes, 0, kNoBlock, 0};
    const size_t at = place_of(in.keys, lowest);
    if (at != in.keys.size()) return {this, &in.keys[at]};
    if (in.more != 0) {
      const auto found = rest_.lower_bound(lowest);
      if (found != rest_.end() && bucket_of(found->size_bytes) == index) return {this, &*found};
    }
  }
  return {this, first_from(index + 1)};
}

void FreeSet::insert(const FreeKey& key) {
  const size_t index = bucket_of(key.size_bytes), group = index / kBucketsOfGroup;
  if (group >= groups_.size()) [[unlikely]]
    groups_.resize(group + 1);
  if (groups_[group] == nullptr) [[unlikely]]
    groups_[group] = std::make_unique<Group>();
  Bucket& in = groups_[group]->buckets[index % kBucketsOfGroup];
  const size_t at = place_of(in.keys, key);
  if (at == in.keys.size() && in.more != 0) {
    in.more += rest_.insert(key).second;
    return;
  }
  if (at != in.keys.size() && !(key < in.keys[at])) return;
  in.keys.insert(in.keys.begin() + static_cast<ptrdiff_t>(at), key);
  groups_[group]->used |= 1ull << index % kBucketsOfGroup;
  used_groups_[group / 64] |= 1ull << group % 64;
  if (in.keys.size() > kMostKeys) spill(&in);
}

/// The upper half of the array goes into the tree.
void FreeSet::spill(Bucket* bucket) {
  const auto middle = bucket->keys.begin() + kMostKeys / 2;
  rest_.insert(middle, bucket->keys.end());
  bucket->more += static_cast<size_t>(bucket->keys.end() - middle);
  bucket->keys.erase(middle, bucket->keys.end());
}

void FreeSet::erase(const FreeKey& key) {
  const size_t index = bucket_of(key.size_bytes);
  if (!is_used(index)) return;
  Bucket& in = groups_[index / kBucketsOfGroup]->buckets[index % kBucketsOfGroup];
  const size_t at = place_of(in.keys, key);
  if (at == in.keys.size()) {
    if (in.more != 0) in.more -= rest_.erase(key);
    return;
  }
  if (!(key < in.keys[at])) erase_at(index, at);
}

void FreeSet::erase(Iterator at) {
  const size_t index = bucket_of(at->size_bytes);
  const Bucket& in = bucket(index);
  if (!lies_in(in.keys, at.key_)) return erase(FreeKey(*at));
  erase_at(index, static_cast<size_t>(at.key_ - in.keys.data()));
}

/// The key at a place in the array of a bucket.
void FreeSet::erase_at(size_t index, size_t at) {
  Bucket& in = groups_[index / kBucketsOfGroup]->buckets[index % kBucketsOfGroup];
  if (in.keys.size() == 1 && in.more != 0) return refill(&in);
  in.keys.erase(in.keys.begin() + static_cast<ptrdiff_t>(at));
  if (in.keys.empty()) note_empty(index);
}

/// The only key of the array makes room for those that come behind it in the tree.
void FreeSet::refill(Bucket* bucket) {
  const auto first = rest_.upper_bound(bucket->keys.front());
  const auto count = static_cast<ptrdiff_t>(std::min(bucket->more, kMostKeys / 2));
  const auto last = std::next(first, count);
  bucket->keys.assign(first, last);
  bucket->more -= static_cast<size_t>(count);
  rest_.erase(first, last);
}

void FreeSet::note_empty(size_t index) {
  const size_t number = index / kBucketsOfGroup;
  Group& group = *groups_[number];
  group.used &= ~(1ull << index % kBucketsOfGroup);
  if (group.used == 0) used_groups_[number / 64] &= ~(1ull << number % 64);
}

const FreeKey* FreeSet::last_below(size_t index, const FreeKey* limit) const {
  size_t group = index / kBucketsOfGroup;
  uint64_t buckets = 0;
  if (group < kGroups && is_used_group(group))
    buckets = groups_[group]->used & ~(~0ull << index % kBucketsOfGroup);
  if (buckets == 0) {
    size_t word = group / 64;
    uint64_t below = group < kGroups ? used_groups_[word] & ~(~0ull << group % 64) : 0;
    while (below == 0 && word-- > 0) below = used_groups_[word];
    if (below == 0) return nullptr;
    group = word * 64 + static_cast<size_t>(std::bit_width(below)) - 1;
    buckets = groups_[group]->used;
  }
  const Bucket& in = groups_[group]->buckets[static_cast<size_t>(std::bit_width(buckets)) - 1];
  if (in.more == 0) return &in.keys.back();
  return &*std::prev(limit == nullptr ? rest_.end() : rest_.lower_bound(*limit));
}

const FreeKey* FreeSet::last() const { return last_below(kGroups * kBucketsOfGroup, nullptr); }

const FreeKey* FreeSet::after(const FreeKey* key) const {
  const size_t index = bucket_of(key->size_bytes);
  const Bucket& in = bucket(index);
  if (lies_in(in.keys, key) && key != &in.keys.back()) return key + 1;
  if (in.more != 0) {
    const auto next = rest_.upper_bound(*key);
    if (next != rest_.end() && bucket_of(next->size_bytes) == index) return &*next;
  }
  return first_from(index + 1);
}

const FreeKey* FreeSet::before(const FreeKey* key) const {
  const size_t index = bucket_of(key->size_bytes);
  const Bucket& in = bucket(index);
  if (!lies_in(in.keys, key)) {
    const auto at = rest_.find(*key);
    const bool is_first = at == rest_.begin() || bucket_of(std::prev(at)->size_bytes) != index;
    return is_first ? &in.keys.back() : &*std::prev(at);
  }
  return key == in.keys.data() ? last_below(index, key) : key - 1;
}

}  // namespace gpumemprof

#include "probe/live_table.h"

#include <sys/mman.h>

#include "probe/recorder.h"
#include "probe/sys.h"

namespace gpumemprof::probe {

void* map_emptied_by_fork(size_t bytes) {
  if (__atomic_load_n(&g_sandboxed, __ATOMIC_RELAXED)) return nullptr;
  void* memory = map_private(bytes);
  if (!memory) return nullptr;
  // Without it (kernel < 4.14) a child would go on with the parent's blocks.
  if (sys(SYS_madvise, sys_ptr(memory), static_cast<long>(bytes), MADV_WIPEONFORK) < 0) {
    sys(SYS_munmap, sys_ptr(memory), static_cast<long>(bytes));
    return nullptr;
  }
  return memory;
}

static uint64_t buckets_of(uint32_t level) {
  return uint64_t{1} << (kFirstLevelBits + kLevelBits * level);
}

Bucket* LiveTable::bucket(uint32_t level, uint64_t address) const {
  Bucket* first = __atomic_load_n(&levels_[level], __ATOMIC_ACQUIRE);
  if (!first) return nullptr;
  // The multiplier is 2^64 by the golden ratio: neighbouring addresses spread over all buckets.
  uint64_t hash = address * 0x9e3779b97f4a7c15u;
  return first + (hash >> (64 - kFirstLevelBits - kLevelBits * level));
}

/// The buckets of an address, one a level. They are far apart in memory, so all are asked for
/// before any is read: the misses overlap. At ten million blocks that is most of what a step costs.
uint32_t LiveTable::buckets(uint64_t address, Bucket* out[kTableLevels]) const {
  uint32_t count = 0;
  for (; count < kTableLevels; ++count) {
    Bucket* b = bucket(count, address);
    if (!b) break;
    if (count) __builtin_prefetch(b);
    out[count] = b;
  }
  return count;
}

bool LiveTable::grow(uint32_t level) {
  if (level == kTableLevels) return false;
  size_t bytes = buckets_of(level) * sizeof(Bucket);
  auto* fresh = static_cast<Bucket*>(map_emptied_by_fork(bytes));
  if (!fresh) return false;
  Bucket* expected = nullptr;
  if (!__atomic_compare_exchange_n(&levels_[level], &expected, fresh, false, __ATOMIC_ACQ_REL,
                                   __ATOMIC_ACQUIRE)) {
    sys(SYS_munmap, sys_ptr(fresh), static_cast<long>(bytes));  // another thread was faster
  }
  return true;
}

LiveTable::Outcome LiveTable::put(uint64_t address, const Block& block, Block* old) {
  if (address == 0) return kNoMemory;
  while (true) {
    Bucket* all[kTableLevels];
    uint32_t levels = buckets(address, all), free_index = 0;
    Bucket* free_bucket = nullptr;
    for (uint32_t level = 0; level < levels; ++level) {
      Bucket* b = all[level];
      for (uint32_t i = 0; i < kBucketBlocks; ++i) {
        uint64_t found = __atomic_load_n(&b->address[i], __ATOMIC_RELAXED);
        if (__builtin_expect(found == address, 0)) {
          *old = b->block[i];
          b->block[i] = block;
          return kReplaced;
        }
        if (found == 0 && !free_bucket) free_bucket = b, free_index = i;
      }
    }
    if (!free_bucket) {
      if (!grow(levels)) return kNoMemory;
      continue;
    }
    uint64_t expected = 0;
    if (__atomic_compare_exchange_n(&free_bucket->address[free_index], &expected, address, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      // Nobody looks for this address before our caller has handed it on.
      free_bucket->block[free_index] = block;
      return kPut;
    }
  }
}

bool LiveTable::find(uint64_t address, Block* out) const {
  if (address == 0) return false;
  Bucket* all[kTableLevels];
  for (uint32_t level = buckets(address, all); level-- > 0;) {
    Bucket* b = all[level];
    for (uint32_t i = 0; i < kBucketBlocks; ++i) {
      if (__atomic_load_n(&b->address[i], __ATOMIC_ACQUIRE) != address) continue;
      *out = b->block[i];
      return true;
    }
  }
  return false;
}

bool LiveTable::take(uint64_t address, Block* out) {
  if (address == 0) return false;
  Bucket* all[kTableLevels];
  for (uint32_t level = buckets(address, all); level-- > 0;) {  // most are in the largest
    Bucket* b = all[level];
    for (uint32_t i = 0; i < kBucketBlocks; ++i) {
      if (__atomic_load_n(&b->address[i], __ATOMIC_RELAXED) != address) continue;
      *out = b->block[i];
      __atomic_store_n(&b->address[i], 0, __ATOMIC_RELEASE);  // after it another block may come
      return true;
    }
  }
  return false;
}

uint32_t LiveTable::level_count() const {
  uint32_t count = 0;
  while (count < kTableLevels && levels_[count]) ++count;
  return count;
}

}  // namespace gpumemprof::probe

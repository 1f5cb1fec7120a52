// Items of one size, by number, taken and returned without a lock. Chunks are mapped as needed and
// stay; in a forked child they are empty, and numbers restart with the PoolHead, which is in
// emptied memory too.
#pragma once

#include <stdint.h>

#include "probe/counters.h"
#include "probe/sys.h"

namespace gpumemprof::probe {

/// `Item` has a `uint32_t next` that the pool uses while the item is free. Numbers begin at 1; 0 is
/// none.
template <class Item, uint32_t kChunkItems, uint32_t kChunks>
class Pool {
 public:
  /// Only for a number that take() returned.
  Item* at(uint32_t number) const {
    return &__atomic_load_n(&chunks_[(number - 1) / kChunkItems],
                            __ATOMIC_ACQUIRE)[(number - 1) % kChunkItems];
  }

  /// Whether take() has ever returned this number in this process.
  bool knows(const PoolHead* head, uint32_t number) const {
    return number != 0 && number <= __atomic_load_n(&head->fresh, __ATOMIC_ACQUIRE);
  }

  /// A free item, as its last owner left it. 0: no memory, or too many.
  uint32_t take(PoolHead* head) {
    uint64_t seen = __atomic_load_n(&head->tag_and_index, __ATOMIC_ACQUIRE);
    while (uint32_t number = static_cast<uint32_t>(seen)) {
      // Another thread may be taking the item; then `next` is invalid and the tag has changed.
      uint32_t next = __atomic_load_n(&at(number)->next, __ATOMIC_RELAXED);
      uint64_t after = ((seen >> 32) + 1) << 32 | next;
      if (__atomic_compare_exchange_n(&head->tag_and_index, &seen, after, false, __ATOMIC_ACQ_REL,
                                      __ATOMIC_ACQUIRE)) {
        return number;
      }
    }
    uint32_t fresh = __atomic_load_n(&head->fresh, __ATOMIC_ACQUIRE);
    do {
      if (fresh == kChunkItems * kChunks || !map_chunk(fresh / kChunkItems)) return 0;
    } while (!__atomic_compare_exchange_n(&head->fresh, &fresh, fresh + 1, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return fresh + 1;
  }

  void give(PoolHead* head, uint32_t number) {
    uint64_t seen = __atomic_load_n(&head->tag_and_index, __ATOMIC_RELAXED), after;
    do {
      __atomic_store_n(&at(number)->next, static_cast<uint32_t>(seen), __ATOMIC_RELAXED);
      after = ((seen >> 32) + 1) << 32 | number;
    } while (!__atomic_compare_exchange_n(&head->tag_and_index, &seen, after, false,
                                          __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  }

 private:
  bool map_chunk(uint32_t index) {
    if (__atomic_load_n(&chunks_[index], __ATOMIC_ACQUIRE)) return true;
    constexpr size_t kBytes = sizeof(Item) * kChunkItems;
    auto* fresh = static_cast<Item*>(map_emptied_by_fork(kBytes));
    if (!fresh) return false;
    Item* expected = nullptr;
    if (!__atomic_compare_exchange_n(&chunks_[index], &expected, fresh, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
      sys(SYS_munmap, sys_ptr(fresh), static_cast<long>(kBytes));
    }
    return true;
  }

  Item* chunks_[kChunks];
};

}  // namespace gpumemprof::probe

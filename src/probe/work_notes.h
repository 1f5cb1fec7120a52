// The module in which work was created that runs later, perhaps on another thread: a fixed table
// without a lock, one word per entry, so that a reader sees all of it or none. The key is the
// framework's own number of the work, which counts up within a thread, and the thread.
//
// New work takes the place of what was created 65,536 pieces before. The key is in the word, so an
// overwritten entry is unknown and never mistaken for another.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

class WorkNotes {
 public:
  /// `module`: from 1, below 2^14 (modules.h has 8,192).
  void put(uint64_t number, uint64_t thread, uint32_t module) {
    if (!fits(number, thread)) return;
    __atomic_store_n(&words_[index(number, thread)], key(number, thread) | module,
                     __ATOMIC_RELAXED);
  }

  /// 0 if nothing is known.
  uint32_t get(uint64_t number, uint64_t thread) const {
    if (!fits(number, thread)) return 0;
    const uint64_t word = __atomic_load_n(&words_[index(number, thread)], __ATOMIC_RELAXED);
    return (word & ~kModuleMask) == key(number, thread) ? static_cast<uint32_t>(word & kModuleMask)
                                                        : 0;
  }

 private:
  static constexpr uint64_t kModuleMask = (1 << 14) - 1;
  static bool fits(uint64_t number, uint64_t thread) {
    return number >> 50 == 0 && thread >> 16 == 0;
  }
  /// Without the thread's share the lowest 16 bits of the number are those of the index, so the key
  /// needs only the others.
  static uint64_t index(uint64_t number, uint64_t thread) {
    return (number + thread * 40503) & 0xffff;
  }
  static uint64_t key(uint64_t number, uint64_t thread) {
    return number >> 16 << 30 | thread << 14;
  }

  uint64_t words_[1 << 16] = {};
};

}  // namespace gpumemprof::probe

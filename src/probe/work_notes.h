// In which module a piece of work was made that runs later, perhaps on another thread: a fixed
// table without a lock, one word an entry, so that a reader sees all of it or none. The key is what
// the framework itself numbers its work by: a number that counts up within a thread, and the
// thread.
//
// What is made later falls on the place of what was made 65,536 pieces before; the key is in the
// word, so what is gone is unknown and never taken for another.
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

  /// 0 where nothing is known.
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
  /// With the thread's share taken away again the lowest 16 bits of the number are those of the
  /// index, so the key needs the others only.
  static uint64_t index(uint64_t number, uint64_t thread) {
    return (number + thread * 40503) & 0xffff;
  }
  static uint64_t key(uint64_t number, uint64_t thread) {
    return number >> 16 << 30 | thread << 14;
  }

  uint64_t words_[1 << 16] = {};
};

}  // namespace gpumemprof::probe

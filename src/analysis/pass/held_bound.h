// How much can have been held at one moment where several threads allocate. A block is recorded
// after it was allocated and before it is freed, so what is live by the records is the least that
// was held. The most: a block is held at the earliest from its thread's event before, at the latest
// until the next event of the thread that frees it. Between two events a thread does one thing
// after the other, so it holds the larger of the block that it frees and the one that it allocates,
// never both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpumemprof {

/// Of one device. Streaming: what a thread's next event says of the time before it is added to the
/// highest levels since the thread's last one. Memory: O(threads).
class HeldBound {
 public:
  /// Call after every event of the device, in order. `allocated_bytes` and `freed_bytes` are 0
  /// where it is none of that; the others are the device's right after it.
  void add(uint32_t thread, uint64_t allocated_bytes, uint64_t freed_bytes, uint64_t live_bytes,
           uint64_t peak_bytes) {
    if (thread == only_thread_) [[likely]] {  // exact: what it frees is gone before it allocates
      freeing_bytes_ = freed_bytes, live_bytes_ = live_bytes, peak_bytes_ = peak_bytes;
      return;
    }
    add_among_threads(thread, allocated_bytes, freed_bytes, live_bytes, peak_bytes);
  }
  /// At least the peak of the records.
  uint64_t most_bytes() const;
  uint32_t threads() const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint64_t kNoEvent = UINT64_MAX;
  static constexpr uint32_t kSeveral = UINT32_MAX - 1;
  /// Of more threads than this, those longest silent are taken to have been silent from the start.
  static constexpr size_t kMostLevels = 64;

  /// The highest level between a thread's last event and the next thread's last event.
  struct Level {
    uint32_t thread;
    uint64_t most_bytes;
  };
  void add_among_threads(uint32_t thread, uint64_t allocated_bytes, uint64_t freed_bytes,
                         uint64_t live_bytes, uint64_t peak_bytes);
  void begin_several(uint64_t live_before);

  uint32_t only_thread_ = kNone;
  uint64_t freeing_bytes_ = 0, live_bytes_ = 0, peak_bytes_ = 0;  // of the one thread
  std::vector<Level> levels_;  // by last event; the first one is of no thread: before all others
  std::vector<uint64_t> freeing_of_;  // by thread: what its last event freed, kNoEvent before it
  uint64_t all_freeing_bytes_ = 0;
};

}  // namespace gpumemprof

// How much can have been held at one moment where several threads allocate. A block is recorded
// after it was allocated and before it is freed, so what is live by the records is the least that
// was held. The most: a block is held at the earliest from its thread's event before, at the latest
// until the next event of the thread that frees it, or for kLongestFreeNs. Between two events a
// thread does one thing after the other, so it holds the larger of the block that it frees and the
// one that it allocates, never both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpumemprof {

/// No free takes longer: a thread that frees a last time would hold its block for ever. Far more than
/// returning 1 GiB to the kernel takes, and than a scheduler leaves a thread waiting.
inline constexpr uint64_t kLongestFreeNs = 250'000'000;

/// Of one device. Streaming: what a thread's next event says of the time before it is added to the
/// highest levels since the thread's last one. Memory: O(threads).
class HeldBound {
 public:
  struct Event {
    uint64_t time_ns = 0;
    uint32_t thread = 0;
    uint64_t allocated_bytes = 0, freed_bytes = 0;  ///< 0 where it is none of that
    uint64_t live_bytes = 0, peak_bytes = 0;        ///< the device's right after it
  };
  /// Call after every event of the device, in order.
  void add(const Event& event) {
    if (event.thread == only_thread_) [[likely]] {  // exact: what it frees is gone before it allocates
      last_ = event;
      return;
    }
    add_among_threads(event);
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

  /// The highest level from a thread's last event on, or from when its last free was over, to the
  /// beginning of the next level.
  struct Level {
    uint32_t thread;
    uint64_t most_bytes;
    uint64_t from_ns;
    bool is_after_free = false;
  };
  void add_among_threads(const Event& event);
  void begin_several();
  void end_frees(uint64_t now_ns);
  void remove(size_t level);

  uint32_t only_thread_ = kNone;
  Event last_;  // of the one thread; of several, the last one
  std::vector<Level> levels_;  // by their beginnings; the first is of no thread: before all others
  struct Free {
    uint64_t bytes = kNoEvent;
    bool is_over = false;
  };
  std::vector<Free> freeing_of_;  // by thread: what its last event freed, kNoEvent before it
  uint64_t all_freeing_bytes_ = 0;    // of frees that may not be over
  uint64_t next_end_ns_ = UINT64_MAX;  // of such a free, at the earliest
};

}  // namespace gpumemprof

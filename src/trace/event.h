// The vocabulary of the whole project: what an event is, and the columns in which events travel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpumemprof {

/// What happened. The numbers are stored in recordings: never renumber, only append.
enum class Action : uint8_t {
  kAlloc = 1,
  kFreeRequested = 2,  ///< the owner let go; a stream may still use the block (CUDA)
  kFreeCompleted = 3,  ///< the block is gone (on the CPU this is the only free event)
  kOom = 4,            ///< size_bytes was refused
  kSegmentAlloc = 5,
  kSegmentFree = 6,
  kSegmentMap = 7,
  kSegmentUnmap = 8,
  kSnapshot = 9,
};
inline constexpr size_t kActionCount = 10;  // index 0 is unused

/// Who owns the bytes: the layers hold the same memory inside each other, so they are never added.
enum class Layer : uint8_t { kHost = 0, kFramework = 1, kAllocator = 2, kDriver = 3 };

/// The names that JSON and text use. "unknown" for a value outside the enum.
const char* action_name(Action action);
const char* layer_name(Layer layer);

inline bool is_free(Action a) { return a == Action::kFreeRequested || a == Action::kFreeCompleted; }

/// The allocator's own running totals right after an event, where the framework gives them.
struct DeviceTotals {
  uint32_t event;  ///< index in the batch
  uint64_t allocated_bytes;
  uint64_t reserved_bytes;
};

/// What was asked for, where that is not size_bytes and is known.
struct RequestedSize {
  uint32_t event;  ///< index in the batch
  uint64_t bytes;
};

/// A run of events in time order, one vector a column, all of the same length (the sparse ones
/// apart). The producer clears and refills it; consumers keep no pointers into it between calls.
struct EventBatch {
  uint64_t first_event = 0;          ///< number of the first event, counted over the whole source
  std::vector<uint64_t> time_ns;     ///< CLOCK_MONOTONIC of the recorded machine
  std::vector<uint64_t> address;     ///< 0 for events without one (oom)
  std::vector<uint64_t> size_bytes;  ///< as the allocator rounded it; 0 where a free does not say
  std::vector<uint32_t> stack;       ///< StackTable id, 0 = no stack known
  std::vector<uint32_t> thread;      ///< index in Tables::threads
  std::vector<uint16_t> device;      ///< index in Tables::devices
  std::vector<Action> action;
  std::vector<int64_t> stream;       ///< cudaStream_t as a number; empty where the source has none
  std::vector<DeviceTotals> totals;  ///< sparse, ordered by event
  std::vector<RequestedSize> requested;  ///< sparse, ordered by event
  /// The source tells both halves of a free: a block is live until its kFreeCompleted, and
  /// kFreeRequested changes nothing. Else either of them ends it. Not touched by clear().
  bool frees_in_two_steps = false;

  size_t size() const { return time_ns.size(); }
  void clear() {
    time_ns.clear(), address.clear(), size_bytes.clear(), stack.clear(), thread.clear();
    device.clear(), action.clear(), stream.clear(), totals.clear(), requested.clear();
  }
  void reserve(size_t n) {
    time_ns.reserve(n), address.reserve(n), size_bytes.reserve(n), stack.reserve(n);
    thread.reserve(n), device.reserve(n), action.reserve(n);
  }
};

}  // namespace gpumemprof

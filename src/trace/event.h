// The basic types of the project: what an event is, and the columns that carry events.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
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

/// The layer that owns the bytes. Layers contain the same memory, so they are never added.
enum class Layer : uint8_t { kHost = 0, kFramework = 1, kAllocator = 2, kDriver = 3 };

/// The names that JSON and text use. "unknown" for a value outside the enum.
const char* action_name(Action action);
const char* layer_name(Layer layer);

inline bool is_free(Action a) { return a == Action::kFreeRequested || a == Action::kFreeCompleted; }

/// The allocator's running totals right after an event, if the framework provides them.
struct DeviceTotals {
  uint32_t event;  ///< index in the batch
  uint64_t allocated_bytes;
  uint64_t reserved_bytes;
};

/// The requested size, if it is known and differs from size_bytes.
struct RequestedSize {
  uint32_t event;  ///< index in the batch
  uint64_t bytes;
};

/// The step of an event that belongs to no step, or whose step is unknown.
inline constexpr int64_t kNoStep = INT64_MIN;
/// What only an allocator itself knows of an event, if it is unusual: another stream or pool, a
/// delayed free.
struct AllocatorDetail {
  uint32_t event = 0;            ///< index in the batch
  bool is_delayed_free = false;  ///< kFreeRequested: streams still use it, kFreeCompleted follows
  bool has_device_free = false;
  int64_t stream = 0;  ///< cudaStream_t as a number
  std::pair<int64_t, int64_t> pool{0, 0};
  uint64_t device_free_bytes = 0;  ///< kOom: what the device had free
  bool operator==(const AllocatorDetail&) const = default;
};

/// The numbers are stored in recordings: never renumber, only append.
enum class MarkKind : uint8_t {
  kSaved = 1,   ///< autograd saved the tensor whose storage begins at `address`; value: SavedFlags
  kRole = 2,    ///< the storage at `address` is `value` (a StorageRole) and is called `text`
  kModule = 3,  ///< the module whose object lies at `address` is called `text`
  kStep = 4,    ///< step number `value` of the process has ended
  kPhaseBegin = 5,  ///< `text`, until the kPhaseEnd of the same process and `address`
  kPhaseEnd = 6,
  kCopied = 7,  ///< the storage at `value` was copied into that at `address`
};
inline constexpr MarkKind kLastMarkKind = MarkKind::kCopied;
enum class StorageRole : uint8_t {
  kParameter = 1,
  kBuffer = 2,
  kGradient = 3,
  kOptimizerState = 4
};
inline constexpr uint64_t kSavedIsOutput = 1;    ///< the result of the operation that saves it
inline constexpr uint64_t kSavedHasHistory = 2;  ///< it has autograd metadata
inline constexpr uint64_t kSavedIsConstant = 4;  ///< that, and requires no gradient: a view of data
/// Of MarkKind::kRole: earlier roles of the address no longer apply.
inline constexpr uint64_t kNoRole = 0;
/// Of MarkKind::kRole without an address, for the whole process: all roles were checked, and every
/// role that was not withdrawn applies to whatever block is now at its address.
inline constexpr uint64_t kRolesHold = 0;
/// The program's code has finished: what is freed later was kept to the end.
inline constexpr uint64_t kProgramEnds = 1;

/// A fact about the program between two events.
struct Mark {
  uint32_t before_event = 0;  ///< index in the batch; its size where no event of it follows
  MarkKind kind = MarkKind::kStep;
  uint32_t thread = 0;  ///< index in Tables::threads, which also tells the process
  uint32_t text = 0;    ///< StringTable id; 0: none
  uint64_t time_ns = 0;
  uint64_t address = 0;
  uint64_t value = 0;
  bool operator==(const Mark&) const = default;

  /// As kProgramEnds, in bits 0 to 3: an end of a collective that no rank leaves before all have
  /// entered it. Above: the collective, the same on all ranks.
  static constexpr uint64_t kCollectiveBegins = 2, kCollectiveEnds = 3;
  bool is_of_process() const { return kind == MarkKind::kRole && address == 0; }
  bool is_program_end() const { return is_of_process() && value == gpumemprof::kProgramEnds; }
  bool is_of_collective() const {
    return is_of_process() &&
           ((value & 15) == kCollectiveBegins || (value & 15) == kCollectiveEnds);
  }
  bool begins_collective() const { return (value & 15) == kCollectiveBegins; }
  uint64_t collective() const { return value >> 4; }
};

/// A run of events in time order, one vector per column, all of the same length except the sparse
/// ones. The producer clears and refills it; consumers keep no pointers into it between calls.
struct EventBatch {
  uint64_t first_event = 0;          ///< number of the first event, counted over the whole source
  std::vector<uint64_t> time_ns;     ///< CLOCK_MONOTONIC of the recorded machine
  std::vector<uint64_t> address;     ///< 0 for events without one (oom)
  std::vector<uint64_t> size_bytes;  ///< as the allocator rounded it; 0 where a free does not say
  std::vector<uint32_t> stack;       ///< StackTable id, 0 = no stack known
  std::vector<uint32_t> thread;      ///< index in Tables::threads
  std::vector<uint16_t> device;      ///< index in Tables::devices
  std::vector<Action> action;
  std::vector<int64_t> stream;  ///< cudaStream_t as a number; empty where the source has none
  /// Numbers of the blocks that events begin or end (TraceStart::numbers), all below `block_count`;
  /// empty in every batch of a source without them.
  std::vector<uint32_t> block;
  uint32_t block_count = 0;
  /// The framework's number for the step of the thread, kNoStep if none; empty if no event of the
  /// batch has a step.
  std::vector<int64_t> step;
  std::vector<DeviceTotals> totals;      ///< sparse, ordered by event
  std::vector<RequestedSize> requested;  ///< sparse, ordered by event
  std::vector<AllocatorDetail> details;  ///< sparse, ordered by event
  std::vector<Mark> marks;               ///< sparse, ordered by before_event, then as said
  /// The source has both halves of a free: a block is live until its kFreeCompleted, and
  /// kFreeRequested changes nothing. Otherwise either of them ends it. Not changed by clear().
  bool frees_in_two_steps = false;

  size_t size() const { return time_ns.size(); }
  void clear() {
    time_ns.clear(), address.clear(), size_bytes.clear(), stack.clear(), thread.clear();
    device.clear(), action.clear(), stream.clear(), totals.clear(), requested.clear();
    details.clear(), step.clear(), marks.clear(), block.clear();
  }
  /// For a producer that writes every column of `count` events: what is in them is not cleared
  /// first.
  void overwrite(size_t count) {
    time_ns.resize(count), address.resize(count), size_bytes.resize(count), stack.resize(count);
    thread.resize(count), device.resize(count), action.resize(count);
    stream.clear(), totals.clear(), requested.clear(), details.clear(), step.clear();
    marks.clear(), block.clear();
  }
  void reserve(size_t n) {
    time_ns.reserve(n), address.reserve(n), size_bytes.reserve(n), stack.reserve(n);
    thread.reserve(n), device.reserve(n), action.reserve(n);
  }
};

}  // namespace gpumemprof

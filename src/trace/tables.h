// What events refer to: strings, frames, stacks, threads, processes, devices. Interned and
// append-only, so an id stays valid for the life of the source that created it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/event.h"
#include "trace/id_index.h"

namespace gpumemprof {

/// Interned strings; id 0 is the empty string. Views are valid as long as the table.
class StringTable {
 public:
  StringTable();
  StringTable(const StringTable& other);  ///< with the same ids
  StringTable(StringTable&&) = default;
  StringTable& operator=(StringTable other);
  uint32_t intern(std::string_view text);
  /// The id that intern() would return for an existing string.
  std::optional<uint32_t> find(std::string_view text) const;
  std::string_view get(uint32_t id) const { return id < texts_.size() ? texts_[id] : texts_[0]; }
  uint32_t size() const { return static_cast<uint32_t>(texts_.size()); }

 private:
  std::string_view keep(std::string_view text);

  std::vector<std::unique_ptr<char[]>> storage_;  // what is in it never moves
  char* room_ = nullptr;                          // of the last one: what is left
  size_t room_bytes_ = 0;
  std::vector<std::string_view> texts_;
  IdIndex ids_;
};

/// One code location. `line` is 0 if only the function is known (native code).
struct Frame {
  uint32_t file = 0;      ///< StringTable id
  uint32_t function = 0;  ///< StringTable id
  uint32_t line = 0;
  bool operator==(const Frame&) const = default;
};

/// Stacks as a prefix tree: a stack is a node, its parent is the caller. The 600 distinct stacks of
/// a training loop share nearly all frames, so they cost about one node each. Node 0 is the empty
/// stack and means "unknown".
class StackTable {
 public:
  struct Node {
    uint32_t parent;
    uint32_t frame;
    uint32_t depth;
    uint32_t first_child = 0;  ///< 0: none yet
  };
  StackTable();
  uint32_t intern_frame(Frame frame);
  /// The stack `parent` with `frame` as its callee.
  uint32_t push(uint32_t parent, uint32_t frame);
  /// The stack that push() would return, if it is there.
  std::optional<uint32_t> find(uint32_t parent, uint32_t frame) const;
  const Node& node(uint32_t stack) const { return nodes_[stack < nodes_.size() ? stack : 0]; }
  const Frame& frame(uint32_t id) const { return frames_[id < frames_.size() ? id : 0]; }
  const Frame& frame_of(uint32_t stack) const { return frame(node(stack).frame); }
  /// The innermost node of the stack whose frame `is_it` holds for; 0 where there is none.
  uint32_t find_node(uint32_t stack, const auto& is_it) const {
    while (stack != 0 && !is_it(frame_of(stack))) stack = node(stack).parent;
    return stack;
  }
  uint32_t stack_count() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t frame_count() const { return static_cast<uint32_t>(frames_.size()); }

 private:
  std::vector<Node, LargePages<Node>> nodes_;
  std::vector<Frame> frames_;
  IdIndex later_children_;  // nodes that are not their parent's first child
  IdIndex frame_ids_;
};

/// Who started a process as one of several.
enum class Launcher : uint8_t {
  kNone = 0,
  kTorchrun = 1,
  kOpenMpi = 2,
  kPmi = 3,
  kSlurm = 4,
  kOwnGroup = 5,  ///< nobody: the program's first process group numbers it
};
/// "torchrun", "Open MPI", "PMI", "Slurm", "the program"; "" for none.
const char* launcher_name(Launcher launcher);

/// Where a process is in its job, as its launcher told it. Rank and host are in Process.
struct PlaceInJob {
  Launcher launcher = Launcher::kNone;
  uint32_t world_size = 0, local_world_size = 0;  ///< 0: not told
  std::optional<uint32_t> local_rank, node;
  uint32_t restarts = 0;  ///< how often the launcher had started the job before
};

/// A monotonic clock that times were read from: a machine's since its boot, or a time namespace's.
struct MachineClock {
  enum class Aligned : uint8_t {
    kIsTheirs,     ///< all times are told on it
    kCollectives,  ///< by what no rank leaves before all have entered it
    kWallClock,
  };
  Aligned by = Aligned::kIsTheirs;
  int64_t shift_ns = 0;  ///< was added to its times
  /// Its times are wrong by at most this, against the clock that they are told on; absent: unknown.
  std::optional<uint64_t> error_ns = 0;
  uint64_t collectives = 0;  ///< by how many it was aligned
  bool drifts = false;       ///< no one shift fits all of them; the error includes that
};

/// One recorded process.
struct Process {
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  uint64_t start_ticks =
      0;  ///< field 22 of /proc/PID/stat: with the pid it names a process for good
  std::string host;
  std::string command;             ///< argv, separated by spaces, cut at 1 KiB
  std::string python_version;      ///< "3.11.7", empty where there was no interpreter
  std::string stacks;              ///< "python", "native", "both", "none", or "none: why"
  std::optional<uint32_t> rank;    ///< as its launcher numbers it
  PlaceInJob place;
  uint32_t clock = 0;              ///< index in Tables::clocks
  bool exited_cleanly = false;     ///< exit() or _exit(); false: killed, crashed, or still running
  uint64_t first_time_ns = 0;      ///< CLOCK_MONOTONIC when its recording began
  /// When it was last recorded, if it has exited by itself, or else was seen to have ended: its
  /// memory was gone by then. Absent: it still runs, or nobody saw its end.
  std::optional<uint64_t> end_time_ns;
  int64_t realtime_offset_ns = 0;  ///< add to a monotonic time for the wall clock
};

struct Thread {
  uint32_t process = 0;  ///< index in Tables::processes
  uint32_t tid = 0;
  std::string name;  ///< as the kernel knew it when it first allocated
};

/// A memory to which events belong: one per process and device.
struct Device {
  uint32_t process = 0;  ///< index in Tables::processes
  /// c10::DeviceType: 0 CPU, 1 CUDA, 12 XPU, 13 MPS, 20 PrivateUse1; or one of kTensorflow…
  int8_t type = 0;
  int8_t index = -1;  ///< -1 where the framework has only one
  Layer layer = Layer::kFramework;
  /// True where size_bytes is what the program asked for (CPU), false where it was rounded (CUDA).
  bool size_is_requested = false;
  /// The allocator's name, if several share a device; otherwise empty.
  std::string name;
  bool operator==(const Device&) const = default;
};

/// Types outside c10::DeviceType: GPUMEMPROF_TENSORFLOW_… of the C API.
inline constexpr int8_t kTensorflowCpu = 64, kTensorflowGpu = 65, kTensorflowOther = 66;
/// GPUMEMPROF_JAX_CPU, and any other JAX device, identified by its name.
inline constexpr int8_t kJaxCpu = 72, kJaxDevice = 73;
/// Large blocks of malloc's and maps, where `run --host` recorded them; `name` says which.
inline constexpr int8_t kHostBlocks = 80;
inline bool is_host_blocks(const Device& device) { return device.type == kHostBlocks; }
inline bool is_host_map(const Device& device) {
  return is_host_blocks(device) && device.name.ends_with(" maps");
}
/// Not a memory but a note: malloc is another library's, which is what follows.
inline constexpr std::string_view kUnseenMalloc = "malloc not recorded: ",
                                  kUnseenMallocAndMaps = "malloc and mmap not recorded: ";
inline bool is_unseen_malloc(const Device& device) {
  return is_host_blocks(device) && (device.name.starts_with(kUnseenMalloc) ||
                                    device.name.starts_with(kUnseenMallocAndMaps));
}
inline bool is_jax(const Device& device) {
  return device.type == kJaxCpu || device.type == kJaxDevice;
}
inline bool is_tensorflow(const Device& device) {
  return device.type >= kTensorflowCpu && device.type <= kTensorflowOther;
}
/// Memory handed out by the CUDA driver, one device per kind (driver_memories.h). It contains the
/// allocators' memory, so it is never added to theirs.
inline bool is_driver_memory(const Device& device) {
  return device.layer == Layer::kDriver && device.name.starts_with("driver ");
}
/// True for host memory, false for an accelerator's.
inline bool is_host_memory(const Device& device) {
  return device.type == 0 || device.type == kTensorflowCpu || device.type == kJaxCpu ||
         is_host_blocks(device);
}

/// An allocator's name from a file, with everything but letters, digits, blanks and "_-.:/+"
/// replaced by "?", because names are printed.
std::string plain_device_name(std::string_view name);
/// "cpu", "cuda:0", "shared memory", "tensorflow:mklcpu", "host malloc", …
std::string device_name(const Device& device);
/// "CPU", "CUDA", … ; "unknown" for a number that PyTorch does not use yet.
const char* backend_name(const Device& device);
/// "pytorch", "tensorflow", "jax", "host".
const char* framework_name(const Device& device);

/// A caching allocator whose own history was requested: one device of one process. If it was
/// recorded, the events have its segments, streams and requested sizes.
struct FollowedAllocator {
  uint32_t process = 0;  ///< index in Tables::processes
  int8_t type = 0, index = 0;
  bool is_followed = false;   ///< from its first segment to the last event
  uint64_t device_bytes = 0;  ///< 0: not known
  std::string torch_version;  ///< "2.13.0+cu130"; empty: not known
  std::string settings;       ///< the text of PYTORCH_CUDA_ALLOC_CONF, as the process had it
  std::string why_not;        ///< one phrase, where it was not followed, or not to the end
  bool operator==(const FollowedAllocator&) const = default;
};

struct Tables {
  StringTable strings;
  StackTable stacks;
  std::vector<Process> processes;
  std::vector<Thread> threads;
  std::vector<Device> devices;
  std::vector<FollowedAllocator> allocators;
  std::vector<MachineClock> clocks;  ///< of recordings
};

/// Text of a file for printing: everything but ASCII letters, digits, punctuation and blanks
/// becomes "?".
std::string printable_ascii(std::string_view text);

/// Adds what one thread or file knows of an allocator: not recorded to the end takes precedence, in
/// whatever order.
void add_allocator(const FollowedAllocator& said, std::vector<FollowedAllocator>* allocators);

/// The file of a frame that is the name of a framework's operation, not a place in code.
inline constexpr std::string_view kOperationFile = "<tensorflow>";
/// The frame of that file below which are not callers but the code that created the operation
/// earlier (recording/operation_lines.h).
inline constexpr std::string_view kMadeBy = "operation made by";

/// The frames of a stack as "file:line function", innermost first. Empty for stack 0.
std::vector<std::string> stack_lines(const Tables& tables, uint32_t stack);

}  // namespace gpumemprof

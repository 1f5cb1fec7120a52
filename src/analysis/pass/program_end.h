// How a recorded program ended, and what memory it was refused: from the meta.json of `run` and the
// dumps of out-of-memory errors beside a recording.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "readers/printed_size.h"
#include "trace/allocator_trace.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Lines of code that held memory, as a dump tells them.
struct HolderAtRefusal {
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::vector<std::string> stack;  ///< innermost first
};

/// The process that a file beside a recording is about. A pid alone may be that of another host too.
struct NamedProcess {
  uint64_t pid = 0;          ///< 0: not known
  uint64_t start_ticks = 0;  ///< 0: an older file, which does not tell
  std::string host;          ///< empty: likewise, or taken away
  bool is(const Process& process) const {
    return pid == process.pid && (start_ticks == 0 || start_ticks == process.start_ticks) &&
           (host.empty() || host == process.host);
  }
};

/// A refused request that ended the program: it did not catch the exception, or gave up after it.
struct RefusedRequest {
  std::string folder;   ///< of the dump
  std::string message;  ///< of the framework
  /// "cpu", "cuda:0", "tensorflow:mklcpu"; only the kind ("cuda") if the number is unknown.
  std::string device;
  NamedProcess process;
  std::optional<PrintedSize> requested;  ///< by the message
  std::optional<PrintedSize> allocated;  ///< in tensors as it was refused, by the message
  std::optional<PrintedSize> allowed;    ///< the process's own limit, by the message
  std::optional<uint64_t> limit_bytes;   ///< the same, by the process itself; absent: none, or not known
  std::optional<uint64_t> device_number;
  /// The event of it, where the recording has it: a device of Tables, and which of its refusals.
  struct Told {
    uint16_t device = 0;
    uint64_t number = 0;
    uint64_t size_bytes = 0, live_bytes = 0;  ///< what was refused, and live as it was
    uint64_t served_count = 0, largest_served_bytes = 0;  ///< as Refusal has them
  };
  std::optional<Told> told;
  std::optional<uint32_t> rank;  ///< of the process, if it recorded
  bool was_caught = false;         ///< the recording alone tells of it: there is no dump
  uint64_t raised_again_from = 0;  ///< the pid to which it was told, where that is another's
  std::string raised_again_in;     ///< the same by the message: "DataLoader worker process 1"
  /// On that device just after it; absent where the process did not record.
  std::optional<uint64_t> live_bytes;
  std::vector<std::string> stack;        ///< where it was asked for, innermost first; may be empty
  std::vector<HolderAtRefusal> holders;  ///< the largest first
  /// Of the host, after it: mapped by the process, how much it may map (ulimit -v), and free for
  /// it.
  std::optional<uint64_t> address_space_bytes, address_space_peak_bytes, address_space_limit_bytes,
      host_free_bytes;
};

/// An exception that ended a process, other than one of those.
struct UncaughtError {
  NamedProcess process;
  uint64_t time_ns = 0;          ///< CLOCK_MONOTONIC
  std::optional<uint32_t> rank;  ///< of the process, if it recorded
  std::string kind, message;     ///< "torch.AcceleratorError"; message: its first line
  std::vector<std::string> stack;  ///< "FILE:LINE FUNCTION", innermost first
};

/// How a process that the program started ended, where `run` saw it.
struct ProcessExit {
  uint64_t pid = 0, start_ticks = 0;
  std::optional<int> exit_code;
  std::string signal;
};

/// A file in /dev/shm that was not there before the run.
struct LeftFile {
  std::string name;
  uint64_t bytes = 0;
  bool is_own = false;  ///< its name has the PID of a process of the run
};

enum class RunState : uint8_t {
  kEnded,
  kRunning,    ///< the program, or its `run`
  kGone,       ///< neither runs, and nothing says how the program ended
  kElsewhere,  ///< the same, on a machine that is not asked
};
/// "ended", "running", "unknown": that of JSON.
const char* run_state_name(RunState state);

/// One run. A program that is running, or whose `run` was killed, has neither code nor signal.
struct ProgramEnd {
  RunState state = RunState::kEnded;
  std::string command, host;
  int64_t pid = 0;
  std::optional<int> exit_code;
  std::string signal;  ///< "SIGKILL"
  std::vector<ProcessExit> exits;
  /// Kernel OOM kills meanwhile, in the cgroup of `run` or on the whole machine; absent where
  /// nobody counted.
  std::optional<uint64_t> kernel_kills;
  bool kills_are_of_cgroup = false;
  std::optional<uint64_t> memory_limit_bytes;  ///< of that cgroup
  std::optional<uint64_t> address_space_limit_bytes;  ///< as it began (ulimit -v)
  uint64_t run_pid = 0;               ///< of `run` itself
  std::vector<LeftFile> left_in_shm;  ///< that nobody has open
};

/// Whether the allocator of that device refused it; of that device in any process.
bool is_of(const RefusedRequest& refused, const Device& device,
           const std::vector<Process>& processes);
bool is_same_memory(const RefusedRequest& refused, const Device& device);
/// Whether memory of the host was asked for, by whichever framework.
bool is_host_refusal(const RefusedRequest& refused);

/// SIGKILL ended it, and the kernel killed for want of memory in its cgroup meanwhile.
bool was_killed_by_the_kernel(const ProgramEnd& run);

/// A process of a program that failed, which itself did not get to exit(): killed, or still running.
struct UnfinishedProcess {
  uint32_t pid = 0;
  std::optional<uint32_t> rank;
  std::string command;
  uint64_t last_event_ns = 0;  ///< its last event, from the start of the recording
};

struct ProgramEnds {
  std::vector<ProgramEnd> runs;
  std::vector<uint32_t> running_pids;  ///< of the processes on this machine that still record
  std::vector<UnfinishedProcess> unfinished;  ///< in the order of their last events
  std::vector<RefusedRequest> refused;
  std::vector<UncaughtError> uncaught;  ///< the first one first
  /// How the first program that did not end by itself with 0 ended; empty where all did or none is
  /// known to have. "the program ran out of memory", "SIGKILL ended the program".
  std::string failure;
};

/// Of the folders among `paths`. Files are untrusted: what is no such file is passed over.
ProgramEnds read_program_ends(const std::vector<std::string>& paths);

/// One dump of an out-of-memory error, as `run` and OOMFlightRecorder write them.
/// Errors: kNotFound, kBadInput, one line.
Result<RefusedRequest> read_oom_dump(const std::string& folder);
/// What its address space had left (ulimit -v); absent where it has no limit, or none is known.
std::optional<uint64_t> mappable_bytes(const RefusedRequest& refused);
/// What was left of the host's memory just after it; absent where that is not known or would have
/// been enough, and of a device.
std::optional<uint64_t> left_bytes(const RefusedRequest& refused);
/// The limit that the process had set itself; absent where none is known.
std::optional<ReserveLimit> reserve_limit(const RefusedRequest& refused);
/// One uncaught.PID.START.json, as a recorded process writes it.
/// Errors: kNotFound, kBadInput, one line.
Result<UncaughtError> read_uncaught_error(const std::string& path);
/// Whether a program that failed did so after a refusal that it caught: events of one device of
/// `process`, the last refusal and the last allocation. Of several recorded processes the program's
/// own and those whose exit was seen are known to have failed.
bool gave_up_after(uint64_t refusal_event, uint64_t last_alloc_event, uint32_t process,
                   const ProgramEnds& ends, const std::vector<Process>& processes);
/// Whether what ended the program was a lack of this device's memory.
bool ended_for_want_of(const Device& device, const ProgramEnds& ends,
                       const std::vector<Process>& processes);
/// Reads what the ends that are there say of the program's failure.
void find_failure(ProgramEnds* ends);
/// What is left are numbers and the kinds of devices.
void take_names_away(ProgramEnds* ends);

}  // namespace gpumemprof

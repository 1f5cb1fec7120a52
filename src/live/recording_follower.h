// The exact counters of a process, read from its growing recording.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "live/follow_observer.h"
#include "trace/live_state.h"

namespace gpumemprof {

/// What one line of code holds now.
struct FollowedHolder {
  uint64_t bytes = 0, count = 0;
  std::string line;  ///< of the user's own code where the stack has any, else innermost
  std::vector<std::string> stack;  ///< of its largest stack, the allocating line first; or empty
  /// The module in whose call it was allocated: "blocks.*.attn" for several equal ones; empty if
  /// unknown, or if its stacks differ.
  std::string module = {};
  std::string category = {};  ///< of most of it; empty where it is not told
  bool has_other_categories = false;
  uint64_t stacks = 1;
};

/// One device of the process, at the last event read.
struct FollowedDevice {
  std::string name;  ///< "cpu", "cuda:0", …
  bool is_cpu = false, is_tensorflow = false;
  int index = -1;
  uint64_t live_bytes = 0, live_count = 0;
  uint64_t peak_bytes = 0;
  uint64_t alloc_count = 0, alloc_bytes = 0;
  uint64_t free_count = 0;  ///< a free that waits for a stream counts once, when it is requested
  uint64_t unmatched_frees = 0;  ///< of blocks from before the recording, or lost events
  uint64_t oom_count = 0;        ///< requests that were refused
  /// The framework's own totals, if it provides them (CUDA).
  std::optional<uint64_t> framework_allocated_bytes, framework_reserved_bytes;
  std::vector<FollowedHolder> holders;  ///< largest first; as many as open() was asked for
  FollowedCategories categories;        ///< where open() was given who tells them
  FollowedGrowth growth;                ///< likewise
  std::vector<FollowedHeld> held;       ///< where look() was asked for it
};

struct FollowedState {
  std::vector<FollowedDevice> devices;
  std::shared_ptr<const DriverMemories> driver;  ///< as the observer tells; its `end` is now
  uint64_t events = 0;
  uint64_t lost_events = 0;      ///< that are known to be missing
  bool has_exited = false;       ///< the process has ended by exit()
  int64_t looked_steady_ns = 0;  ///< when this was read; the same where nothing was read anew
  bool has_held = false;         ///< FollowedDevice::held is filled in
  bool exact = true;             ///< false: `why_inexact` says what is missing
  std::string why_inexact;
};

/// How long ago it was read, at `now_ns` of the steady clock.
double age_seconds(const FollowedState& state, int64_t now_ns);
/// Figures that are older are not called exact: a look at a busy program may take long, and the next
/// ones repeat it.
inline constexpr double kLateSeconds = 2;
/// Why its figures are not exactly those of `now_ns`; empty where they are.
std::string why_not_exact(const FollowedState& state, int64_t now_ns);

/// Blocks that ended, plus frees of unseen blocks. For a checkpoint whose figures contradict each
/// other the number does not wrap.
uint64_t frees_of(const DeviceFigures& figures);

/// Decodes each sealed chunk once and the unsealed rest at every look, so a look costs what
/// happened since the last sealing, plus the checksums of the whole file. The recorded process is
/// not involved. Not thread-safe.
class RecordingFollower {
 public:
  /// `holders`: how many lines of code a look names per device; naming walks over all that hold
  /// something. Errors: those of open_recording for one file.
  static Result<RecordingFollower> open(const std::string& gmp_path, size_t holders = 0,
                                        const FollowObserverFactory& observer = {});
  RecordingFollower(RecordingFollower&&) noexcept;
  RecordingFollower& operator=(RecordingFollower&&) noexcept;
  ~RecordingFollower();

  /// What is held now. After a look, but the first, the next ones return the same result for nine
  /// times the CPU time that it took, so that following never takes more than a tenth of a core; but one `with_held`
  /// reads anew where that result has none. Errors: kSystem.
  Result<FollowedState> look(bool with_held = false);
  /// Those of the ids of the last look.
  const Tables& tables() const;

  /// Whose recording it is: the PID as the process itself sees it, and its machine.
  int pid() const;
  uint64_t start_ticks() const;
  std::string host() const;
  std::string command() const;  ///< argv with spaces, cut at 1 KiB

 private:
  struct Impl;
  explicit RecordingFollower(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpumemprof

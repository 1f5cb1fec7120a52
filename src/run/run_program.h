// One recorded run, from the command's words to its sealed recording.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "run/meta.h"

namespace gpumemprof {

struct RunOptions {
  std::vector<std::string> command;
  std::string folder;  ///< empty: named after the program and the time
  bool force = false;  ///< delete the recording that is in the folder
  std::string stacks = "python";
  bool free_stacks = false;
  bool record_cpu = true;
  bool record_host = false;  ///< large blocks of malloc and mmap
  uint64_t max_disk_bytes = 0;
  std::optional<bool> explain_leaks;  ///< unset: where it costs next to nothing
  bool attribution = true;
  bool record_driver = true;  ///< the CUDA driver, where there is one
  std::string version;
  /// Called with a share in [0, 1] while the recording is finished, after the program's end.
  std::function<void(double)> on_finishing;
};

struct RunOutcome {
  int wait_status = 0;  ///< of the program, as waitpid gives it
  /// Of the process that had most at once, of the program and those that it waited for.
  std::optional<uint64_t> most_resident_bytes;
  KernelKills kernel_kills;
  std::string folder;        ///< as the user would type it; empty: nothing is left of it
  std::string unrecordable;  ///< "PROGRAM is …", empty where the probe could be in it
  /// What to open for this run's processes: the folder, or files of one that runs share. Empty
  /// where no process wrote events.
  std::vector<std::string> recorded;
  bool torch_seen = false;
  bool allocated_nothing = false;  ///< DescendantWatcher's
  bool has_recorded_cpu = true;    ///< RunOptions::record_cpu
  std::string unreadable_command;  ///< a descendant that we may not look at
  std::string meta_path;           ///< empty: the folder is gone
  bool is_any_alive = false;       ///< a descendant outlives the program, and may record
  std::vector<ProcessExitStatus> exits;  ///< of recorded descendants, as far as it was seen
  std::vector<NotRecorded> not_recorded;
  std::vector<std::string> oom_bundles;  ///< names of those that this run left
  std::vector<std::string> uncaught;     ///< names of the exceptions' notes that it left
  std::vector<std::string> warnings;     ///< what failed on our side; never the program's concern
};

/// Runs the program and waits for it. On return the recording is sealed as far as its processes are
/// gone. Errors: before the program starts; kUsage and kNotFound are the user's, kSystem is ours.
/// Nothing was executed then, and a folder made for it is gone again.
Result<RunOutcome> run_program(const RunOptions& options);

/// Why nothing was recorded, as far as that is known, and what would record more: one sentence
/// without a full stop. `tells_of_host`: whether RunOptions::record_host would be more.
std::string why_nothing_was_recorded(const RunOutcome& outcome, bool tells_of_host = false);

}  // namespace gpumemprof

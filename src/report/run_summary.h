// The summary of `gpumemprof run`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis.h"

namespace gpumemprof {

struct RunSummaryContext {
  std::string folder;  ///< the recording, as the user would type it
  /// Processes that could not be recorded, one text each: which, and why.
  std::vector<std::string> not_recorded;
  /// Folder of an uncaught out-of-memory error, or the parent of several; empty: none.
  std::string oom_bundle;
  /// Of the process of the run that had most at once, by the kernel's count.
  std::optional<uint64_t> resident_bytes;
  /// How this command was called; the next command is shown the same way.
  std::string tool = "gpumemprof";
  /// What every line begins with.
  std::string prefix = "gpumemprof";
  /// Paths of code below it are shown relative to it; may be empty.
  std::string working_folder;
};

/// At most some twelve lines, each "gpumemprof: …\n" (or another prefix), safe for a terminal
/// whatever the recording holds: how it ended, the peak, when, its top three holders, the first
/// finding, what was lost or not seen and why, the command to type next.
std::string run_summary(const Analysis& analysis, const Tables& tables, const Loss& loss,
                        const RunSummaryContext& context);

}  // namespace gpumemprof

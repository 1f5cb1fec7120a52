// The child process that runs a loop without memory, and the folder in which it leaves its traces.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/temporary_folder.h"
#include "estimate/step_trace.h"

namespace gpumemprof {

/// Where a traced program leaves its traces, and what it could not do.
class TraceFolder {
 public:
  /// Errors: kSystem.
  static Result<TraceFolder> make();
  const std::string& path() const { return folder_.path(); }
  /// Files in it that end so, sorted.
  std::vector<std::string> ending_in(const std::string& suffix) const;
  /// What the tracer could not do, in its own words; empty where it said nothing.
  std::string reason() const;

 private:
  explicit TraceFolder(TemporaryFolder folder) : folder_(std::move(folder)) {}
  TemporaryFolder folder_;
};

using EnvironmentChanges = std::vector<std::pair<std::string, std::string>>;

enum class TraceStreams : uint8_t {
  kOutputOnErrors,  ///< its standard output goes to ours of errors
  kNone,            ///< it reads nothing, and what it writes is dropped
};

enum class TraceDevices : uint8_t { kHidden, kSeen };

/// Runs the program until it ends; it sees no GPU unless `devices` says so. The answer is its
/// status as waitpid gives it. Errors: those of starting it.
Result<int> run_traced(const std::vector<std::string>& words, const EnvironmentChanges& changes,
                       TraceStreams streams = TraceStreams::kOutputOnErrors,
                       TraceDevices devices = TraceDevices::kHidden);

/// The traced process of a folder; with several, the one with the most events, and how many there
/// were. Errors: kUnsupported with the reason where there is none, kBadInput.
Result<StepTrace> trace_in(const TraceFolder& folder, int wait_status);

// Which program a command is: a traced command must be a Python that has our package, since any
// other would run in earnest, to its end.

/// The Python that a command runs, and its options before the script: "python -u -X dev train.py"
/// gives {"/usr/bin/python", "-u", "-X", "dev"}. A script is run by the Python of its "#!" line.
/// Errors: kNotFound, and kUsage where it is no Python.
Result<std::vector<std::string>> python_of(const std::vector<std::string>& words,
                                           const std::string& search_path);

/// Starts that Python for a moment, and nothing of the user's. Errors: those of python_of(), and
/// kUsage where the tracer does not come into it.
Status check_that_python_has_tracer(const std::vector<std::string>& words);

}  // namespace gpumemprof

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

}  // namespace gpumemprof

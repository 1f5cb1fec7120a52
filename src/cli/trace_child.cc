#include "cli/trace_child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/file.h"
#include "run/child.h"
#include "run/program.h"

namespace gpumemprof {
namespace {

constexpr size_t kMaxReasonBytes = 4096;

std::vector<std::string> environment_with(const EnvironmentChanges& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const bool is_changed = std::ranges::any_of(
        changes, [&](const auto& change) { return text.starts_with(change.first + '='); });
    if (!is_changed) result.push_back(text);
  }
  for (const auto& [name, value] : changes) result.push_back(name + '=' + value);
  return result;
}

std::string how_it_ended(int wait_status) {
  if (WIFSIGNALED(wait_status)) return "ended by signal " + std::to_string(WTERMSIG(wait_status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(wait_status));
}

/// While it lives, what we start has other standard streams than we.
class ChildStreams {
 public:
  explicit ChildStreams(TraceStreams streams) {
    if (streams == TraceStreams::kOutputOnErrors) {
      put(STDERR_FILENO, STDOUT_FILENO);
      return;
    }
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0) return;
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) put(nothing, stream);
    close(nothing);
  }
  ~ChildStreams() {
    for (const auto& [stream, kept] : kept_) {
      dup2(kept, stream);
      close(kept);
    }
  }
  ChildStreams(const ChildStreams&) = delete;
  ChildStreams& operator=(const ChildStreams&) = delete;

 private:
  void put(int from, int stream) {
    const int kept = fcntl(stream, F_DUPFD_CLOEXEC, 3);
    if (kept >= 0) kept_.emplace_back(stream, kept);
    dup2(from, stream);
  }
  std::vector<std::pair<int, int>> kept_;
};

}  // namespace

Result<TraceFolder> TraceFolder::make() {
  auto folder = TemporaryFolder::make("gpumemprof-estimate");
  if (!folder) return std::unexpected(folder.error());
  return TraceFolder(std::move(*folder));
}

std::vector<std::string> TraceFolder::ending_in(const std::string& suffix) const {
  std::vector<std::string> found;
  std::error_code error;
  for (std::filesystem::directory_iterator at(path(), error), end; !error && at != end;
       at.increment(error)) {
    if (at->path().native().ends_with(suffix)) found.push_back(at->path().native());
  }
  std::ranges::sort(found);
  return found;
}

std::string TraceFolder::reason() const {
  for (const std::string& path : ending_in(".error")) {
    auto text = read_small_file(path, kMaxReasonBytes);
    if (text && !text->empty()) return text->substr(0, text->find('\n'));
  }
  return "";
}

Result<int> run_traced(const std::vector<std::string>& words, const EnvironmentChanges& changes,
                       TraceStreams streams, TraceDevices devices) {
  const char* search_path = std::getenv("PATH");
  auto program =
      inspect_program(words[0], search_path ? search_path : "/usr/bin:/bin", current_caller());
  if (!program) return std::unexpected(program.error());
  EnvironmentChanges all = changes;
  if (devices == TraceDevices::kHidden) all.emplace_back("CUDA_VISIBLE_DEVICES", "");
  SignalScope signals;
  const ChildStreams redirected(streams);
  auto pid = launch(program->path, words, environment_with(all), signals);
  if (!pid) return std::unexpected(pid.error());
  return wait_for_program(*pid, signals);
}

Result<StepTrace> trace_in(const TraceFolder& folder, int wait_status) {
  const std::vector<std::string> files = folder.ending_in(".trace");
  if (files.empty()) {
    std::string reason = folder.reason();
    if (reason.empty() && folder.ending_in(".armed").empty()) {
      reason = "no Python with the gpumemprof package ran";
    }
    if (reason.empty())
      reason = "it " + how_it_ended(wait_status) + " before it finished two steps";
    return fail(ErrorCode::kUnsupported, reason);
  }
  Result<StepTrace> best = fail(ErrorCode::kUnsupported, "");
  for (const std::string& file : files) {
    auto trace = read_step_trace(file);
    if (!trace) return trace;
    if (!best || trace->events.size() > best->events.size()) best = std::move(trace);
  }
  if (files.size() > 1) {
    best->facts.assumptions.push_back(
        std::to_string(files.size()) +
        " processes were traced; this is the one with the most events");
  }
  return best;
}

}  // namespace gpumemprof

#include "cli/trace_child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/file.h"
#include "base/folder.h"
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
  std::vector<std::string> found =
      names_in(path(), [&](std::string_view name) { return name.ends_with(suffix); });
  for (std::string& name : found) name = path() + '/' + name;
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

namespace {

constexpr size_t kFirstLineBytes = 256;  // as the kernel reads

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The words of a "#!" line; empty where the file has none.
std::vector<std::string> first_line_words(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line(kFirstLineBytes, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(file.gcount()));
  if (!line.starts_with("#!")) return {};
  line = line.substr(2, line.find('\n') - 2);
  std::vector<std::string> words;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  // `env NAME` finds a program and no more; with -S it takes several words. What else it does (-i
  // empties the environment) may keep the tracer out.
  if (!words.empty() && file_name(words[0]) == "env") {
    words.erase(words.begin());
    if (!words.empty() && words[0] == "-S") words.erase(words.begin());
    if (words.empty() || words[0].starts_with('-') || words[0].find('=') != std::string::npos)
      words.insert(words.begin(), "env");
  }
  return words;
}

/// Python's own options that stand before the script, or before what replaces one (-c, -m).
std::vector<std::string> options_before_script(const std::vector<std::string>& words) {
  std::vector<std::string> options;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-' || word == "--") break;
    options.push_back(word);
    if (word == "--check-hash-based-pycs" && i + 1 < words.size()) options.push_back(words[++i]);
    if (word[1] == '-') continue;
    const size_t special = word.find_first_of("cmWX", 1);
    if (special == word.npos) continue;
    if (word[special] == 'c' || word[special] == 'm') {  // "-um" is "-u" and the last one
      options.back() = word.substr(0, special);
      if (special == 1) options.pop_back();
      break;
    }
    if (special + 1 == word.size() && i + 1 < words.size()) options.push_back(words[++i]);
  }
  return options;
}

}  // namespace

Result<std::vector<std::string>> python_of(const std::vector<std::string>& words,
                                           const std::string& search_path) {
  auto program = inspect_program(words[0], search_path, current_caller());
  if (!program) return std::unexpected(program.error());
  std::string path = program->path;
  std::vector<std::string> started = words;
  if (const auto line = first_line_words(path); !line.empty()) {
    auto interpreter = inspect_program(line[0], search_path, current_caller());
    if (!interpreter) return std::unexpected(interpreter.error());
    path = interpreter->path;
    started = line;
  }
  if (!file_name(path).starts_with("python") || !first_line_words(path).empty()) {
    return fail(ErrorCode::kUsage,
                "cannot verify that its Python has gpumemprof, without which the program would run "
                "for real: name the Python (-- python train.py)");
  }
  std::vector<std::string> python = options_before_script(started);
  python.insert(python.begin(), path);
  return python;
}

Status check_that_python_has_tracer(const std::vector<std::string>& words) {
  const char* search_path = std::getenv("PATH");
  auto python = python_of(words, search_path ? search_path : "/usr/bin:/bin");
  if (!python) return std::unexpected(python.error());
  const std::string path = python->front();
  auto folder = TraceFolder::make();
  if (!folder) return std::unexpected(folder.error());
  python->insert(python->end(), {"-c", "pass"});
  auto status = run_traced(*python, {{"GPUMEMPROF_ESTIMATE", folder->path()}}, TraceStreams::kNone);
  if (!status) return std::unexpected(status.error());
  if (!folder->ending_in(".armed").empty()) return {};
  return fail(ErrorCode::kUsage,
              "that Python does not have gpumemprof, without which the program would run for real: "
              "install the package gpumemprof " +
                  (path == words[0] ? "there" : "in " + path));
}

}  // namespace gpumemprof

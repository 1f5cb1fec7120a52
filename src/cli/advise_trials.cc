#include "cli/advise_trials.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "analysis/advice/practices.h"
#include "analysis/analyze.h"
#include "base/descriptor.h"
#include "cli/commands.h"
#include "cli/python_program.h"

extern char** environ;

namespace gpumemprof {
namespace {

constexpr const char* kChangeVariable = "GPUMEMPROF_TRY";
constexpr const char* kStepsVariable = "GPUMEMPROF_TRY_STEPS";
constexpr const char* kMadeVariable = "GPUMEMPROF_TRY_MADE";

/// The change of _trying.py that a kind of advice is about; empty where none can be made from
/// outside.
std::string change_of(const Advice& advice) {
  if (advice.kind == "gradients_kept") return "drop_gradients";
  if (advice.kind == "optimizer_temporaries") return "one_by_one";
  if (advice.kind == "prefetch") return "prefetch_two";
  if (advice.kind != "checkpointing") return "";
  const std::string_view modules = advice.modules;
  // Models beside the first have a "#" in their names.
  if (!modules.ends_with(".*") || modules.contains('#')) return "";
  return "checkpoint:" + std::string(modules.substr(0, modules.size() - 2));
}

/// _trying.py makes this file when it makes the change, in whichever process.
std::string made_file(const std::string& recording) { return recording + ".made"; }

uint64_t highest_peak(const Analysis& analysis, const Tables& tables, const Device& like) {
  uint64_t peak = 0;
  for (const DeviceAnalysis& device : analysis.devices) {
    if (device.device < tables.devices.size() &&
        device_name(tables.devices[device.device]) == device_name(like))
      peak = std::max(peak, device.figures.peak_bytes);
  }
  return peak;
}

/// Median time between the ends of steps after the first, of the process that has most of them.
std::optional<uint64_t> median_step_ns(const Analysis& analysis) {
  std::vector<std::vector<uint64_t>> ends;
  for (const CategoryMoment& moment : analysis.moments) {
    if (moment.kind != CategoryMoment::kStepEnd) continue;
    if (moment.process >= ends.size()) ends.resize(size_t{moment.process} + 1);
    ends[moment.process].push_back(moment.time_ns);
  }
  const auto most = std::ranges::max_element(ends, {}, &std::vector<uint64_t>::size);
  if (most == ends.end() || most->size() < 3) return std::nullopt;
  std::vector<uint64_t> steps;
  for (size_t i = 1; i < most->size(); ++i) steps.push_back((*most)[i] - (*most)[i - 1]);
  std::ranges::nth_element(steps, steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2));
  return steps[steps.size() / 2];
}

}  // namespace

Result<TrialRun> AdviseTrials::record(const std::string& name, const std::string& change,
                                      bool is_shown) {
  const std::string recording = folder_ + '/' + name;
  std::vector<std::string> words = {own_program(), "run", "--quiet", "--output", recording, "--"};
  words.insert(words.end(), command_.begin(), command_.end());
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view text = *one;
    if (!text.starts_with(std::string(kChangeVariable))) variables.emplace_back(text);
  }
  if (!change.empty()) {
    variables.push_back(std::string(kChangeVariable) + '=' + change);
    variables.push_back(std::string(kMadeVariable) + '=' + made_file(recording));
  }
  if (steps_ != 0) variables.push_back(std::string(kStepsVariable) + '=' + std::to_string(steps_));
  std::vector<char*> argv, environment;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& variable : variables) environment.push_back(variable.data());
  argv.push_back(nullptr), environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // Our own standard output is the advice's.
  if (is_shown) {
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  }
  pid_t child = -1;
  restore_descriptor_limit();
  const int failed =
      posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environment.data());
  raise_descriptor_limit();
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return fail(ErrorCode::kSystem, std::string("cannot run: ") + strerror(failed));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return TrialRun{recording, ""};
  return TrialRun{recording,
                  WIFSIGNALED(status)
                      ? "the program was ended by signal " + std::to_string(WTERMSIG(status))
                      : "the program ended with exit code " + std::to_string(WEXITSTATUS(status))};
}

void AdviseTrials::measure_one(const Analysis& base, const Tables& tables,
                               const std::string& change, Advice* advice) {
  const Result<TrialRun> run = record("try-" + std::to_string(++trials_), change, false);
  if (!run || !run->failure.empty()) {
    advice->not_measured = "with the change " + (run ? run->failure : run.error().message);
    return;
  }
  // A run of the program as it was would be taken for a change that saves nothing.
  if (!std::filesystem::exists(made_file(run->folder))) {
    advice->not_measured = "the run ended before the change applied";
    return;
  }
  auto input = open_input({run->folder});
  auto changed =
      input ? analyze(*input, {.depth = AnalysisDepth::kPeak}) : std::unexpected(input.error());
  if (!changed) {
    advice->not_measured = changed.error().message;
    return;
  }
  const uint64_t after =
      highest_peak(changed->analysis, changed->tables(), tables.devices[advice->device]);
  const uint64_t before = highest_peak(base, tables, tables.devices[advice->device]);
  if (after == 0) {
    advice->not_measured = "the run with the change allocated nothing";
    return;
  }
  advice->peak_bytes = before;
  advice->changed_peak_bytes = after;
  advice->bytes = before - std::min(before, after);
  advice->basis = SavingBasis::kMeasured;
  advice->step_ns = median_step_ns(base);
  advice->changed_step_ns = median_step_ns(changed->analysis);
}

void AdviseTrials::measure(const Analysis& base, const Tables& tables, AdviceReport* report) {
  std::vector<std::pair<std::string, Advice*>> wanted;
  for (Advice& advice : report->advice) {
    const std::string change = change_of(advice);
    if (advice.device < tables.devices.size() && !change.empty())
      wanted.emplace_back(change, &advice);
  }
  if (wanted.size() == 1)
    std::fprintf(stderr, "%s: running the program once more, with the change\n", tool_name());
  else if (!wanted.empty())
    std::fprintf(stderr, "%s: running the program %zu more times, once for each change\n",
                 tool_name(), wanted.size());
  for (const auto& [change, advice] : wanted) measure_one(base, tables, change, advice);
  order_advice(&report->advice);
}

}  // namespace gpumemprof

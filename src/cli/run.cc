// gpumemprof run: records a program and says in ten lines what it found.
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>

#include "analysis/analyze.h"
#include "base/size.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "report/describe/end_words.h"
#include "report/run_summary.h"
#include "run/child.h"
#include "run/run_program.h"

namespace gpumemprof {
namespace {

#ifndef GPUMEMPROF_VERSION
#define GPUMEMPROF_VERSION "unknown"
#endif

/// What the command line says; lives as long as the parser.
struct RunArguments {
  RunOptions options;
  std::string max_disk;
  bool no_cpu = false;
  bool no_attribution = false;
  bool no_driver = false;
  bool quiet = false;
  std::vector<std::string> command;  // as the parser took it apart
  std::vector<std::string> unknown;  // unknown options
};

void say(std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

/// The program's last line may have no end. On a terminal as many blanks as it is wide go on to the
/// next line from anywhere but the beginning of one.
void begin_a_line() {
  winsize size = {};
  if (isatty(STDERR_FILENO) != 1 || ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0) return;
  if (size.ws_col == 0) return;
  say(std::string(std::min<size_t>(size.ws_col, 1000), ' ') + '\r');
}

/// Control characters of a foreign text would reach the terminal.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) c = '?';
  }
  return tool_name() + (": " + text) + '\n';
}

/// The first word of our own command line.
std::string typed_name() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string name;
  std::getline(file, name, '\0');
  return name.empty() ? "gpumemprof" : name;
}

std::vector<std::string> as_text(const std::vector<NotRecorded>& processes) {
  std::vector<std::string> result;
  for (const NotRecorded& one : processes) {
    std::string text = "pid " + std::to_string(one.pid) + " (" + one.command + "): " + one.reason;
    const std::string lost = lost_text(one.processes, one.lost_events, one.lost_bytes);
    result.push_back(lost.empty() ? text : text + ": " + lost);
  }
  return result;
}

/// Folder of the out-of-memory dump, or the parent of several.
std::string oom_bundle(const RunOutcome& outcome) {
  if (outcome.oom_bundles.empty()) return "";
  const std::string folder = outcome.folder + "/oom_dumps";
  return outcome.oom_bundles.size() == 1 ? folder + '/' + outcome.oom_bundles[0] : folder;
}

/// How this run ended, and the out-of-memory dumps written during it.
ProgramEnds ends_of(const RunOutcome& outcome) {
  ProgramEnds ends;
  ProgramEnd run;
  if (WIFSIGNALED(outcome.wait_status))
    run.signal = signal_name(WTERMSIG(outcome.wait_status));
  else
    run.exit_code = WEXITSTATUS(outcome.wait_status);
  run.kernel_kills = outcome.kernel_kills.count;
  run.kills_are_of_cgroup = outcome.kernel_kills.is_of_cgroup;
  run.memory_limit_bytes = outcome.kernel_kills.limit_bytes;
  ends.runs.push_back(std::move(run));
  for (const std::string& name : outcome.oom_bundles) {
    if (auto one = read_oom_dump(outcome.folder + "/oom_dumps/" + name))
      ends.refused.push_back(std::move(*one));
  }
  return ends;
}

/// A shell prompt waits for the summary: findings of more events are left to `analyze`.
constexpr uint64_t kMostEventsToLookThrough = 200'000;

Result<Analyzed> look_for_peak(Input* input) {
  Progress progress("looking for the peak");
  AnalysisOptions options;
  options.depth = AnalysisDepth::kPeak;
  options.on_progress = [&](double share) { progress.update(share); };
  return analyze(*input, options);
}

void say_summary(const RunOutcome& outcome) {
  const std::string bundle = oom_bundle(outcome);
  ProgramEnds ends = ends_of(outcome);
  const std::string where = outcome.folder.empty() ? "" : " in " + outcome.folder;
  std::string nothing =
      one_line("nothing recorded" + where + ": " + why_nothing_was_recorded(outcome));
  for (const std::string& text : end_sentences(ends, working_folder())) nothing += one_line(text);
  if (outcome.recorded.empty()) return say(nothing);
  auto input = open_input(outcome.recorded);
  auto analyzed = input ? look_for_peak(&*input) : std::unexpected(input.error());
  if (analyzed && analyzed->analysis.events <= kMostEventsToLookThrough) {
    if (auto whole = analyze(*input, {})) analyzed = std::move(whole);
  }
  if (!analyzed) {
    report_error(outcome.folder, analyzed.error());
    return;
  }
  Analysis& analysis = analyzed->analysis;
  add_program_ends(std::move(ends), analyzed->tables(), &analysis);
  if (analysis.events == 0 && analysis.loss.has_every_event()) {
    say(nothing);
  } else {
    say(run_summary(analysis, analyzed->tables(), analysis.loss,
                    {.folder = outcome.folder,
                     .not_recorded = as_text(outcome.not_recorded),
                     .oom_bundle = bundle,
                     .tool = typed_name(),
                     .prefix = tool_name(),
                     .working_folder = working_folder()}));
  }
}

/// Runs it and, once it has ended, shows how far the recording is finished. The cursor is at the
/// beginning of a line then.
Result<RunOutcome> run_and_show(RunArguments* arguments) {
  std::optional<Progress> progress;
  if (!arguments->quiet) {
    arguments->options.on_finishing = [&](double share) {
      if (!progress) begin_a_line(), progress.emplace("finishing the recording");
      progress->update(share);
    };
  }
  auto outcome = run_program(arguments->options);
  const bool says_more = !arguments->quiet || (outcome && !outcome->warnings.empty());
  if (outcome && !progress && says_more) begin_a_line();
  return outcome;
}

/// The exit code where nothing was started; else this process ends as the program did.
int record(RunArguments& arguments) {
  auto words = command_words("run", arguments.command, arguments.unknown);
  if (!words) return report_error("run", words.error());
  arguments.options.command = std::move(*words);
  arguments.options.record_cpu = !arguments.no_cpu;
  arguments.options.attribution = !arguments.no_attribution;
  arguments.options.record_driver = !arguments.no_driver;
  arguments.options.version = GPUMEMPROF_VERSION;
  if (!arguments.max_disk.empty()) {
    auto size = parse_size(arguments.max_disk);
    if (!size) return report_error("--max-disk", size.error());
    arguments.options.max_disk_bytes = *size;
  }
  auto outcome = run_and_show(&arguments);
  if (!outcome) return report_error("", outcome.error());
  for (const std::string& warning : outcome->warnings) say(one_line(warning));
  if (!arguments.quiet) say_summary(*outcome);
  end_as(outcome->wait_status);
}

}  // namespace

void add_run_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* run = app.add_subcommand("run", "record a program and the processes it starts");
  run->add_option("-o,--output", arguments->options.folder,
                  "folder of the recording (default: named after the program and the time)")
      ->type_name("FOLDER");
  run->add_flag("--force", arguments->options.force, "replace the recording that is in the folder");
  run->add_option("--stacks", arguments->options.stacks, "which stacks to record")
      ->check(CLI::IsMember({"python", "native", "both", "none"}))
      ->capture_default_str();
  run->add_flag("--free-stacks", arguments->options.free_stacks,
                "also record where memory is freed");
  run->add_flag("--no-cpu", arguments->no_cpu, "do not record CPU tensors");
  run->add_flag(
      "--no-attribution", arguments->no_attribution,
      "record stacks only: no modules, steps, parameter names or categories; less overhead");
  run->add_flag("--no-driver", arguments->no_driver,
                "do not record the CUDA driver, HIP and Level Zero: no memory of libraries, "
                "contexts, modules");
  run->add_option("--max-disk", arguments->max_disk,
                  "drop the oldest events above this size (24GiB, 24GB or bytes); peaks and totals "
                  "stay exact")
      ->type_name("SIZE");
  run->add_flag_callback(
      "--explain-leaks", [arguments] { arguments->options.explain_leaks = true; },
      "record which variable, attribute or container holds each tensor, at intervals and at the "
      "end, so that `analyze` can name what keeps a leak (default: within 1 % of the run time)");
  run->add_flag_callback(
      "--no-explain-leaks", [arguments] { arguments->options.explain_leaks = false; },
      "never look for the holders of tensors");
  run->add_flag("-q,--quiet", arguments->quiet, "no summary at the end");
  run->add_option("command", arguments->command, "the program and its arguments")
      ->type_name("COMMAND");
  run->allow_extras();  // options of a command without "--": command_words() says what to do
  run->callback([arguments, run, &context] {
    arguments->unknown = run->remaining();
    std::erase(arguments->unknown, "--");  // the parser counts it in
    context.exit_code = record(*arguments);
  });
}

}  // namespace gpumemprof

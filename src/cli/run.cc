// gpumemprof run: records a program and says in ten lines what it found.
#include <sys/utsname.h>
#include <sys/wait.h>

#include <memory>

#include "analysis/analyze.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/input.h"
#include "cli/progress.h"
#include "cli/recorded_run.h"
#include "report/describe/end_words.h"
#include "report/run_summary.h"
#include "run/child.h"
#include "run/meta.h"
#include "run/run_program.h"

namespace gpumemprof {
namespace {

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
  const auto take = [](int wait_status, auto* end) {
    if (WIFSIGNALED(wait_status))
      end->signal = signal_name(WTERMSIG(wait_status));
    else
      end->exit_code = WEXITSTATUS(wait_status);
  };
  take(outcome.wait_status, &run);
  utsname system = {};
  uname(&system);
  run.host = system.nodename;
  for (const ProcessExitStatus& one : outcome.exits) {
    ProcessExit& exit = run.exits.emplace_back();
    exit.pid = static_cast<uint64_t>(one.pid), exit.start_ticks = one.start_ticks;
    take(one.wait_status, &exit);
  }
  run.kernel_kills = outcome.kernel_kills.count;
  run.kills_are_of_cgroup = outcome.kernel_kills.is_of_cgroup;
  run.memory_limit_bytes = outcome.kernel_kills.limit_bytes;
  run.address_space_limit_bytes = address_space_limit_bytes();
  ends.runs.push_back(std::move(run));
  for (const std::string& name : outcome.oom_bundles) {
    if (auto one = read_oom_dump(outcome.folder + "/oom_dumps/" + name))
      ends.refused.push_back(std::move(*one));
  }
  for (const std::string& name : outcome.uncaught) {
    if (auto one = read_uncaught_error(outcome.folder + '/' + name))
      ends.uncaught.push_back(std::move(*one));
  }
  find_failure(&ends);
  return ends;
}

/// A shell prompt waits for the summary: findings of more events are left to `analyze`.
constexpr uint64_t kMostEventsToLookThrough = 1'000'000;

Result<Analyzed> look_for_peak(Input* input, const ProgramEnds& ends) {
  Progress progress("looking for the peak");
  AnalysisOptions options;
  options.depth = AnalysisDepth::kPeak, options.ends = &ends;
  options.on_progress = [&](double share) { progress.update(share); };
  return analyze(*input, options);
}

/// Every later command says of the folder what is said here.
void keep_why_nothing(const RunOutcome& outcome, const std::string& why, const ProgramEnds& ends) {
  if (outcome.meta_path.empty() || outcome.is_any_alive) return;
  std::string text = why;
  for (const Sentence& said : end_sentences(ends, nullptr, working_folder()))
    text += (text.ends_with('.') ? " " : ". ") + said.text;
  (void)add_why_nothing(outcome.meta_path, text);
}

void say_summary(const RunOutcome& outcome, bool records_host, bool is_quiet) {
  const std::string bundle = oom_bundle(outcome);
  const ProgramEnds ends = ends_of(outcome);
  const std::string where = outcome.folder.empty() ? "" : " in " + outcome.folder;
  const std::vector<std::string> typed = typed_words();
  const std::string why = why_nothing_was_recorded(outcome, !records_host);
  if (outcome.recorded.empty()) keep_why_nothing(outcome, why, ends);
  if (is_quiet) return;
  std::string nothing = one_line("nothing recorded" + where + ": " + why);
  for (const Sentence& said : end_sentences(ends, nullptr, working_folder()))
    nothing += one_line(said.text);
  if (outcome.recorded.empty()) return say(nothing);
  auto input = open_input(outcome.recorded);
  auto analyzed = input ? look_for_peak(&*input, ends) : std::unexpected(input.error());
  if (analyzed && analyzed->analysis.events <= kMostEventsToLookThrough) {
    if (auto whole = analyze(*input, {.ends = &ends})) analyzed = std::move(whole);
  }
  if (!analyzed) {
    report_error(outcome.folder, analyzed.error());
    return;
  }
  const Analysis& analysis = analyzed->analysis;
  if (analysis.events == 0 && analysis.loss.has_every_event()) {
    say(nothing);
  } else {
    say(run_summary(analysis, analyzed->tables(), analysis.loss,
                    {.folder = outcome.folder,
                     .not_recorded = as_text(outcome.not_recorded),
                     .oom_bundle = bundle,
                     .resident_bytes = outcome.most_resident_bytes,
                     .tool = typed.empty() || typed[0].empty() ? "gpumemprof" : typed[0],
                     .prefix = tool_name(),
                     .working_folder = working_folder()}));
  }
}

/// The exit code where nothing was started; else this process ends as the program did.
int record(RunArguments& arguments) {
  if (auto done = complete_run_options("run", &arguments); !done)
    return report_error("", done.error());
  auto outcome = run_and_show(&arguments, !arguments.quiet);
  if (!outcome) return report_error("", outcome.error());
  for (const std::string& warning : outcome->warnings) say(one_line(warning));
  say_summary(*outcome, arguments.options.record_host, arguments.quiet);
  end_as(outcome->wait_status);
}

}  // namespace

void add_run_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* run = app.add_subcommand("run", "record a program and the processes it starts");
  add_run_options(run, arguments.get());
  run->add_flag("-q,--quiet", arguments->quiet, "no summary at the end");
  run->callback([arguments, run, &context] {
    arguments->wrong_option = wrong_option_sentence(*run);
    context.exit_code = record(*arguments);
  });
}

}  // namespace gpumemprof

// gpumemprof gate: runs a program, and fails where it holds more than its baseline or its limit.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>

#include "analysis/compare/memory_baseline_file.h"
#include "base/file.h"
#include "base/size.h"
#include "cli/commands.h"
#include "cli/gate_subjects.h"
#include "cli/help.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/recorded_run.h"
#include "cli/temporary_folder.h"
#include "report/gate_report.h"
#include "report/words.h"
#include "run/child.h"
#include "run/meta.h"

namespace gpumemprof {
namespace {

/// Design: 3 where the gate fails.
constexpr int kExitGateFails = 3;

struct GateArguments {
  RunArguments run;
  std::string baseline, limit, reason;
  std::string tolerance = "1%";
  std::string markdown, junit, benchmark, measured;
  bool update = false;
};

/// What is decided before the program runs.
struct GatePlan {
  uint32_t tolerance_ppm = 0;
  std::optional<uint64_t> limit_bytes;
  std::optional<MemoryBaseline> baseline;  ///< the file's
  bool writes = false;                     ///< a new one, in its place
};

struct GateEnd {
  int exit_code = kExitOk;
  int wait_status = 0;  ///< of the program; where it failed this process ends so
};

bool has_succeeded(int wait_status) {
  return WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
}

/// "the program was ended by SIGKILL: its peaks are those until then"; empty where it succeeded.
std::string end_sentence(int wait_status) {
  if (has_succeeded(wait_status)) return "";
  const std::string end = WIFSIGNALED(wait_status)
                              ? "was ended by " + signal_name(WTERMSIG(wait_status))
                              : "exited with " + std::to_string(WEXITSTATUS(wait_status));
  return "the program " + end + ": its peaks are those until then";
}

Result<std::optional<MemoryBaseline>> read_baseline(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  const auto text = read_small_file(path, kMostBaselineBytes);
  auto read = text ? parse_baseline(*text) : std::unexpected(text.error());
  if (!read) {
    Error wrong = read.error();
    if (!wrong.message.starts_with(path)) wrong.message = path + ": " + wrong.message;
    return std::unexpected(std::move(wrong));
  }
  return std::move(*read);
}

Status check_reason(const std::string& reason) {
  if (reason.size() > kMostReasonBytes)
    return fail(ErrorCode::kUsage,
                "--reason: longer than " + std::to_string(kMostReasonBytes) + " bytes");
  if (reason.find_first_not_of(" \t\r\n") == std::string::npos)
    return fail(ErrorCode::kUsage, "--reason is empty: say why the peak is right");
  return {};
}

/// Whether the arguments fit the baseline that is there.
Status plan_baseline(const GateArguments& arguments, bool has_reason, GatePlan* plan) {
  const std::string& path = arguments.baseline;
  if (path.empty()) {
    if (arguments.update || has_reason)
      return fail(ErrorCode::kUsage, "--update and --reason need --baseline FILE");
    if (!plan->limit_bytes && arguments.measured.empty())
      return fail(ErrorCode::kUsage,
                  "nothing to compare with: give --baseline FILE or --limit SIZE");
    return {};
  }
  auto read = read_baseline(path);
  if (!read) return std::unexpected(read.error());
  plan->baseline = std::move(*read);
  if (arguments.update && !has_reason)
    return fail(ErrorCode::kUsage, "--update needs --reason \"why the new peak is right\"");
  if (!plan->baseline && !has_reason)
    return fail(ErrorCode::kNotFound,
                path + ": no such baseline; --reason \"why this peak is right\" makes it");
  if (plan->baseline && has_reason && !arguments.update)
    return fail(ErrorCode::kUsage, path + ": exists; --update with --reason replaces it");
  plan->writes = has_reason;
  return {};
}

/// Before the program, which may run for hours.
Status check_files(const GateArguments& arguments) {
  for (const std::string* path :
       {&arguments.markdown, &arguments.junit, &arguments.benchmark, &arguments.measured}) {
    if (*path == "-")
      return fail(ErrorCode::kUsage, "-: standard output is the program's; name a file");
    if (path->empty()) continue;
    const std::string folder = std::filesystem::path(*path).parent_path();
    const bool is_there = access(path->c_str(), F_OK) == 0;
    const std::string& place = is_there ? *path : folder.empty() ? "." : folder;
    if (access(place.c_str(), W_OK) != 0)
      return fail(ErrorCode::kSystem, *path + ": cannot be written: " + strerror(errno));
  }
  return {};
}

Result<GatePlan> plan_gate(const GateArguments& arguments, bool has_reason) {
  GatePlan plan;
  if (auto done = check_files(arguments); !done) return std::unexpected(done.error());
  const auto tolerance = parse_tolerance(arguments.tolerance);
  if (!tolerance) return fail(ErrorCode::kUsage, "--tolerance: " + tolerance.error().message);
  plan.tolerance_ppm = *tolerance;
  if (!arguments.limit.empty()) {
    const auto limit = parse_size(arguments.limit);
    if (!limit) return fail(ErrorCode::kUsage, "--limit: " + limit.error().message);
    plan.limit_bytes = *limit;
  }
  if (has_reason) {
    if (auto done = check_reason(arguments.reason); !done) return std::unexpected(done.error());
  }
  if (auto done = plan_baseline(arguments, has_reason, &plan); !done)
    return std::unexpected(done.error());
  return plan;
}

std::string limit_with_unit(const std::string& typed) {
  return typed.find_first_not_of("0123456789") == std::string::npos ? typed + " bytes" : typed;
}

/// Of the program alone, and of its accelerator where it used one, as `analyze` shows it.
void apply_limit(uint64_t limit_bytes, std::vector<PeakComparison>* peaks) {
  PeakComparison* main = nullptr;
  for (PeakComparison& peak : *peaks) {
    if (!peak.subject.empty() || peak.verdict == PeakVerdict::kMissing) continue;
    const bool is_host = peak.kind == "cpu";
    const bool main_is_host = main != nullptr && main->kind == "cpu";
    if (main == nullptr || (main_is_host && !is_host) ||
        (main_is_host == is_host && peak.now_bytes > main->now_bytes))
      main = &peak;
  }
  if (main != nullptr) main->limit_bytes = limit_bytes;
}

int write_baseline(const GateArguments& arguments, const GatePlan& plan,
                   const std::vector<PeakSubject>& subjects) {
  MemoryBaseline next{.version = GPUMEMPROF_VERSION, .subjects = subjects};
  if (plan.baseline) next.reasons = plan.baseline->reasons;
  next.reasons.push_back({time_text("%Y-%m-%d", true), arguments.reason});
  const int code = write_output(baseline_json(next), arguments.baseline, {});
  if (code == kExitOk)
    say(one_line(printable(arguments.baseline) + ": written, " +
                 format_plural(subjects.size(), "subject") + ": " + printable(arguments.reason)));
  return code;
}

/// Why peaks are none to compare later runs with; empty where they are.
std::string why_no_baseline(int wait_status, const std::vector<PeakSubject>& subjects) {
  if (!has_succeeded(wait_status)) return "the program failed";
  const bool is_exact = std::ranges::all_of(subjects, [](const PeakSubject& subject) {
    return std::ranges::all_of(subject.memories, &PeakMemory::is_exact);
  });
  return is_exact ? "" : "events were lost";
}

/// The files that were asked for. The first exit code that is not 0.
int write_files(const GateArguments& arguments, const GateReport& report) {
  int code = kExitOk;
  const auto write = [&](const std::string& path, const std::string& text) {
    if (path.empty()) return;
    const int written = write_output(text, path, {});
    if (code == kExitOk) code = written;
  };
  write(arguments.markdown, gate_markdown(report));
  write(arguments.junit, gate_junit(report));
  write(arguments.benchmark, gate_benchmark(report));
  write(arguments.measured, measurement_json(report.subjects, GPUMEMPROF_VERSION));
  return code;
}

/// Where tests were measured, what the process of the others held is no subject: which of them run
/// together is a matter of -k and of workers.
void keep_tests_only(std::vector<PeakSubject>* subjects) {
  const auto is_program = [](const PeakSubject& subject) { return subject.name.empty(); };
  if (!std::ranges::all_of(*subjects, is_program)) std::erase_if(*subjects, is_program);
}

int judge(const GateArguments& arguments, const GatePlan& plan, const RunOutcome& outcome,
          const std::string& tests) {
  auto subjects = gate_subjects(outcome, tests);
  if (!subjects) return report_error("", subjects.error());
  if (!plan.limit_bytes) keep_tests_only(&*subjects);
  if (subjects->empty()) {
    // A measurement of nothing is one; a comparison with it is none.
    const bool compares = !arguments.baseline.empty() || plan.limit_bytes;
    if (compares || !arguments.run.quiet)
      say(one_line("nothing measured: " + why_nothing_was_recorded(outcome)));
    const int written = write_files(arguments, {.tolerance = arguments.tolerance});
    return compares ? kExitToolFailed : written;
  }
  GateReport report{.subjects = *subjects,
                    .tolerance = arguments.tolerance,
                    .limit = limit_with_unit(arguments.limit),
                    .end = end_sentence(outcome.wait_status)};
  const bool compares = plan.baseline && !plan.writes;
  if (compares) report.baseline = arguments.baseline;
  report.peaks =
      compare_peaks(*subjects, plan.baseline ? plan.baseline->subjects : std::vector<PeakSubject>(),
                    plan.tolerance_ppm);
  if (plan.writes) {  // what it was is told and no failure
    for (PeakComparison& peak : report.peaks)
      if (peak.verdict == PeakVerdict::kGrew) peak.verdict = PeakVerdict::kWithin;
  }
  if (plan.limit_bytes) apply_limit(*plan.limit_bytes, &report.peaks);
  const bool passes = report.failures() == 0 && report.unknowns() == 0;
  if (!arguments.run.quiet || !passes || !report.end.empty()) {
    for (const std::string& line : gate_lines(report)) say(one_line(line));
  }
  const int written = write_files(arguments, report);
  if (written != kExitOk) return written;
  std::string why_not;
  if (plan.writes) {
    why_not = why_no_baseline(outcome.wait_status, *subjects);
    const int code = why_not.empty() ? write_baseline(arguments, plan, *subjects) : kExitOk;
    if (code != kExitOk) return code;
    if (!why_not.empty())
      say(one_line(why_not + ": " + printable(arguments.baseline) + " is not written"));
  }
  if (report.failures() > 0) return kExitGateFails;
  return passes && why_not.empty() ? kExitOk : kExitToolFailed;
}

Result<GateEnd> run_gate(GateArguments& arguments, const GatePlan& plan) {
  const auto folder = TemporaryFolder::make("gpumemprof-gate");
  if (!folder) return std::unexpected(folder.error());
  const bool is_kept = !arguments.run.options.folder.empty();
  if (!is_kept) arguments.run.options.folder = folder->path() + "/recording";
  const std::string tests = folder->path() + "/tests";
  std::error_code error;
  if (!std::filesystem::create_directory(tests, error) ||
      setenv(kGateVariable, tests.c_str(), 1) != 0)
    return fail(ErrorCode::kSystem, tests + ": cannot be made");
  auto outcome = run_and_show(&arguments.run, true);
  if (!outcome) return std::unexpected(outcome.error());
  for (const std::string& warning : outcome->warnings) say(one_line(warning));
  const int code = judge(arguments, plan, *outcome, tests);
  if (is_kept && !arguments.run.quiet && !outcome->recorded.empty())
    say(one_line("Next: " + std::string(tool_name()) + " analyze " + outcome->folder));
  return GateEnd{code, outcome->wait_status};
}

/// The exit code where the program ended well or nothing was started; else this process ends as the
/// program did.
int gate(GateArguments& arguments, bool has_reason) {
  if (auto done = complete_run_options("gate", &arguments.run); !done)
    return report_error("", done.error());
  const auto plan = plan_gate(arguments, has_reason);
  if (!plan) return report_error("", plan.error());
  const auto end = run_gate(arguments, *plan);
  if (!end) return report_error("", end.error());
  if (!has_succeeded(end->wait_status)) end_as(end->wait_status);
  return end->exit_code;
}

}  // namespace

void add_gate_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<GateArguments>();
  CLI::App* command = app.add_subcommand(
      "gate", "run a program and fail if its peak exceeds a baseline or a limit");
  command->footer(
      "Exit codes: the program's own if it fails; 3 if a peak grew beyond the tolerance or exceeds the "
      "limit; else 0. With pytest, each marked test (with --gpumemprof-all after --: every test) is "
      "measured in its own process.");
  add_value(command, "--baseline", "FILE", arguments->baseline,
            "peaks to compare with; a file to commit (JSON)");
  const CLI::Option* reason =
      add_value(command, "--reason", "TEXT", arguments->reason,
                "write the baseline; it keeps this text, which says why the peaks are right");
  command->add_flag("--update", arguments->update, "with --reason: replace an existing baseline");
  add_defaulted(command, "--tolerance", "PERCENT", arguments->tolerance,
                "growth that passes, in percent of the baseline's peak");
  add_value(command, "--limit", "SIZE", arguments->limit,
            "fail if the program's peak is higher (24GiB, 24GB or bytes)");
  add_value(command, "--markdown", "FILE", arguments->markdown,
            "write a comment for a pull request, at most 60,000 bytes");
  add_value(command, "--junit", "FILE", arguments->junit,
            "write JUnit XML, one test case per peak");
  add_value(command, "--benchmark", "FILE", arguments->benchmark,
            "write the JSON of github-action-benchmark (customSmallerIsBetter)");
  add_value(command, "--measured", "FILE", arguments->measured,
            "write the peaks and what was live at the end, with lines (JSON)");
  add_run_options(command, &arguments->run);
  command->get_option("--output")->description("keep the recording in this folder");
  command->add_flag("-q,--quiet", arguments->run.quiet, "print only what failed");
  command->callback([arguments, command, reason, &context] {
    arguments->run.wrong_option = wrong_option_sentence(*command);
    context.exit_code = gate(*arguments, reason->count() > 0);
  });
}

}  // namespace gpumemprof

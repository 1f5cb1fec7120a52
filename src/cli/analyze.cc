// gpumemprof analyze: how high, when, and which lines held it.
#include "analysis/analyze.h"

#include <memory>
#include <optional>

#include "analysis/advice/practices.h"
#include "analysis/compare/fail_on.h"
#include "cli/analyze_parts.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/page.h"
#include "cli/progress.h"
#include "report/describe/describe.h"
#include "report/describe/explanation.h"
#include "report/describe/source_text.h"
#include "report/json_report.h"
#include "report/render/text.h"
#include "report/text_report.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

std::string render(const Analysis& analysis, const Tables& tables,
                   const AnalyzeArguments& arguments, const AdviceReport* advice,
                   const Cost* cost) {
  const std::string format = report_format(arguments.format, arguments.output);
  if (format == "json") return json_report(analysis, tables, 1, advice, cost);
  std::string text = text_report(analysis, tables,
                     {.color = report_color(arguments.color, arguments.output),
                      .columns = report_columns(arguments.output),
                      .shows_source = !arguments.anonymize && !arguments.no_source,
                      .full_stacks = arguments.full_stacks,
                      .working_folder = working_folder(),
                      .known_advice = advice});
  if (cost) text += cost_text(*cost);
  return fitted_to_terminal(std::move(text), arguments.output);
}

/// The analysis of one input.
struct Shown {
  std::string name;  // of the input, as reports may say it
  std::string text;
  std::string plain;  // the same as text, where --report or --optimize asks for it
  AdviceReport advice;
  std::string otherwise;  // what is said where there is no advice
  FailVerdict verdict;    // of the conditions of --fail-on
};

/// Design: 3 where --fail-on fails.
constexpr int kExitConditionHolds = 3;

/// The exit code.
int say_verdict(const FailVerdict& verdict) {
  std::string why;
  for (const std::string& one : verdict.failures) why += (why.empty() ? "" : "; ") + one;
  for (const std::string& line : {why, verdict.unknown})
    if (!line.empty()) report_error("--fail-on", {ErrorCode::kUsage, line});
  if (!why.empty()) return kExitConditionHolds;
  return verdict.unknown.empty() ? kExitOk : kExitToolFailed;
}

bool asks_for_advice(const Analysis& analysis, const Tables& tables) {
  const DeviceAnalysis* device = main_device(analysis, tables);
  return device && explain_peak(analysis, tables, *device, "").asks_for_advice;
}

/// What goes into a report, however it came to be wanted; absent where nothing asks for it.
Result<std::optional<AdviceReport>> advice_of(const Analysis& analysis, const Tables& tables,
                                              const AnalyzeArguments& arguments,
                                              const SourceOpener* reopen) {
  const bool is_asked = arguments.optimize;
  const bool is_shown = report_format(arguments.format, arguments.output) != "text";
  const auto wrapped = [](Result<AdviceReport> report) -> Result<std::optional<AdviceReport>> {
    if (!report) return std::unexpected(report.error());
    return std::optional(std::move(*report));
  };
  if (reopen && is_asked)
    return wrapped(advise_on_recording(analysis, tables, *reopen, line_text()));
  if (reopen && (is_shown || asks_for_advice(analysis, tables)))
    return wrapped(advise_in_passing(analysis, tables, *reopen, line_text()));
  if (is_asked || !arguments.report_path.empty()) {
    AdviceReport report = advise_tensorflow(analysis, tables);
    if (!report.applies && arguments.anonymize)
      report.unknown = {{"all", "--anonymize replaces the names that the rules read"}};
    return std::optional(std::move(report));
  }
  return std::optional<AdviceReport>();
}

/// `reopen`: of a recording of which practices can be asked; else null. `known`: what was asked of
/// it already, or null.
Result<Shown> show(const Analysis& analysis, const Tables& tables,
                   const AnalyzeArguments& arguments, const SourceOpener* reopen,
                   const AdviceReport* known = nullptr) {
  Result<std::optional<AdviceReport>> advice = std::optional<AdviceReport>();
  if (known != nullptr)
    advice->emplace(*known);
  else
    advice = advice_of(analysis, tables, arguments, reopen);
  if (!advice) return std::unexpected(advice.error());
  std::optional<Cost> cost;
  if (arguments.cost) {
    const bool has_saving =
        arguments.optimize || report_format(arguments.format, arguments.output) != "text";
    auto told = cost_of(analysis, tables, has_saving && *advice ? &**advice : nullptr,
                        *arguments.cost);
    if (!told) return std::unexpected(told.error());
    cost = std::move(*told);
  }
  Shown shown{.name = analysis.source.path};
  if (*advice) shown.advice = std::move(**advice);
  const AdviceReport* advice_shown = (reopen || known) && *advice ? &shown.advice : nullptr;
  if (report_format(arguments.format, arguments.output) != "html")
    shown.text = render(analysis, tables, arguments, advice_shown, cost ? &*cost : nullptr);
  if (arguments.optimize || !arguments.report_path.empty()) {
    shown.otherwise = next_beside_advice(analysis, tables, working_folder());
    shown.plain =
        text_report(analysis, tables,
                    {.shows_source = !arguments.anonymize && !arguments.no_source,
                     .working_folder = working_folder(),
                     .known_advice = advice_shown});
  }
  if (cost && !shown.plain.empty()) shown.plain += cost_text(*cost);
  if (!arguments.fail_on.empty()) {
    const auto conditions = parse_fail_conditions(arguments.fail_on);  // checked before
    if (conditions) shown.verdict = judge_conditions(*conditions, analysis, tables);
  }
  return shown;
}

/// The same where a page is wanted, which stays in `page`.
Result<Shown> show_page(const AnalyzeArguments& arguments, std::unique_ptr<PageService>* page) {
  auto read =
      load_page_file(arguments.paths,
                     {.reading = {.seal = !arguments.no_seal,
                                  .names = arguments.anonymize ? std::make_shared<Anonymizer>()
                                                               : nullptr,
                                  .analysis = {.capacity_bytes = arguments.capacity_bytes},
                                  .all_advice = arguments.optimize}});
  if (!read) return std::unexpected(read.error());
  const auto whole = (*read)->whole();
  if (!whole) return std::unexpected(whole.error());
  const auto advice = (*whole)->advice();
  if (!advice) return std::unexpected(advice.error());
  std::vector<std::unique_ptr<PageFile>> files;
  files.push_back(std::move(*read));
  *page = std::make_unique<PageService>(std::move(files), GPUMEMPROF_VERSION);
  return show((*whole)->analysis(), (*whole)->tables(), arguments, nullptr, *advice);
}

Result<Shown> show_input(const AnalyzeArguments& arguments) {
  AnalysisOptions options{.capacity_bytes = arguments.capacity_bytes};
  auto input = open_input_showing_progress(arguments.paths, !arguments.no_seal);
  if (!input) return std::unexpected(input.error());
  // An anonymous snapshot is described by its events only.
  if (arguments.anonymize) input->anonymize(std::make_shared<Anonymizer>());
  Progress progress("analyzing");
  options.on_progress = [&](double done) { progress.update(done); };
  const auto analyzed = analyze(*input, options);
  if (!analyzed) return std::unexpected(analyzed.error());
  const SourceOpener reopen = [&] { return input->events(); };
  // Under other names the events would be another trace. A snapshot is asked only where advice is.
  const bool can_reopen =
      !arguments.anonymize && (!input->snapshot() || arguments.optimize);
  return show(analyzed->analysis, analyzed->tables(), arguments, can_reopen ? &reopen : nullptr);
}

/// Of several snapshots: nothing else is asked for, which is of one alone.
bool is_answer_enough(const AnalyzeArguments& arguments, const std::string& format) {
  return (format == "text" || format == "txt") && !arguments.optimize && !arguments.anonymize &&
         !arguments.visualization && !arguments.cost && arguments.report_path.empty() && arguments.fail_on.empty();
}

/// The answer of each snapshot in turn, such as those of several ranks.
int analyze_snapshots(const std::vector<std::string>& files, const AnalyzeArguments& arguments) {
  std::string text;
  int code = kExitOk;
  for (const std::string& file : files) {
    AnalyzeArguments one = arguments;
    one.paths = {file};
    auto input = open_input_showing_progress(one.paths, false);
    auto analyzed = input ? analyze(*input, {.capacity_bytes = one.capacity_bytes})
                          : std::unexpected(input.error());
    if (!analyzed) {
      code = report_error(file, analyzed.error());
      continue;
    }
    text += (text.empty() ? "" : "\n") + printable(file) + '\n';
    for (const std::string& line :
         text_lines(describe_peak(analyzed->analysis, analyzed->tables(), {}, "Nothing was live."),
                    {.color = report_color(arguments.color, arguments.output)}))
      text += line + '\n';
  }
  text += "\nNext: " + std::string(tool_name()) + " analyze FILE for one of them\n";
  const int written =
      write_output(fitted_to_terminal(std::move(text), arguments.output), arguments.output, files);
  return written == kExitOk ? code : written;
}

int analyze_command(AnalyzeArguments& arguments) {
  const std::string subject = arguments.paths.size() == 1 ? arguments.paths[0] : "";
  if (!arguments.fail_on.empty()) {
    const auto conditions = parse_fail_conditions(arguments.fail_on);
    if (!conditions) return report_error("--fail-on", conditions.error());
  }
  const auto capacity = read_capacity(arguments.capacity);
  if (!capacity) return report_error("", capacity.error());
  arguments.capacity_bytes = *capacity;
  if (const int code =
          read_cost_options(arguments.prices, arguments.capacity, &arguments.cost);
      code != kExitOk)
    return code;
  const InputKind kind = input_kind(arguments.paths);
  const bool has_events = kind != InputKind::kOomDump && kind != InputKind::kSamples;
  if (arguments.cost &&
      (!has_events || report_format(arguments.format, arguments.output) == "html"))
    return wrong_usage("--price and --prices are for recordings and snapshots, as text or JSON");
  if (kind == InputKind::kOomDump) return analyze_oom_dump(arguments);
  if (kind == InputKind::kSamples) {
    if (!arguments.fail_on.empty()) {
      return report_error(
          subject,
          {ErrorCode::kUsage, "--fail-on is for recordings and snapshots, not for samples"});
    }
    if (!arguments.anonymize) return analyze_telemetry_file(arguments);
    return report_error(subject, {ErrorCode::kUsage,
                                  "--anonymize is for recordings and snapshots, "
                                  "not for samples"});
  }
  if (!(arguments.sensitivity > 0 && arguments.sensitivity <= 1)) return wrong_sensitivity();
  const std::string format = report_format(arguments.format, arguments.output);
  if (kind == InputKind::kSnapshot && is_answer_enough(arguments, format)) {
    const std::vector<std::string> files = snapshots_in(arguments.paths[0]);
    if (files.size() > 1) return analyze_snapshots(files, arguments);
  }
  const bool is_page = format == "html";
  std::unique_ptr<PageService> page;
  const Result<Shown> shown = is_page || arguments.visualization ? show_page(arguments, &page)
                                                                 : show_input(arguments);
  if (!shown) return report_error(subject, shown.error());
  // Only now: an input that cannot be read must not cost an older result.
  const int written = is_page ? write_page(*page, arguments.output)
                              : write_output(shown->text, arguments.output, arguments.paths);
  if (written != kExitOk) return written;
  const int advised =
      add_advice(arguments, shown->name, shown->plain, shown->advice, shown->otherwise);
  if (advised != kExitOk) return advised;
  const int drawn = arguments.visualization
                        ? write_visualization(arguments,
                                              [&](const std::string& path) {
                                                return write_page(*page, path);
                                              })
                        : kExitOk;
  return drawn == kExitOk ? say_verdict(shown->verdict) : drawn;
}

void add_advice_options(CLI::App* command, AnalyzeArguments* arguments) {
  command->add_flag("--advice,--optimize", arguments->optimize,
                    "also suggest what to change, with the bytes saved; JSON and HTML include it "
                    "for recordings of up to 5 million events");
  add_value(command, "--report", "FILE", arguments->report_path,
            "also write the analysis and the advice to this file: Markdown if its name ends "
            "in .md, else text");
}

/// Options of `tfmemprof analyze` only.
void add_documented_options(CLI::App* command, CLI::Option* path, AnalyzeArguments* arguments) {
  add_value(command, "--input", "DIR|FILE...", arguments->paths, "same as the positional path")
      ->excludes(path);
  command->add_flag("--detect-leaks", arguments->detect_leaks,
                    "accepted for compatibility; findings are always shown");
}

}  // namespace

void add_analyze_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<AnalyzeArguments>();
  CLI::App* command =
      app.add_subcommand("analyze", "explain a recording: the peak, the lines that held it, leaks");
  CLI::Option* path =
      command->add_option("path", arguments->paths,
                          "recordings (folders or .gmp files; several are read as one); or one "
                          "file: samples of track, monitor, diagnose or a Python tracker, a "
                          "PyTorch memory snapshot, a TensorFlow profile or memory dump");
  path->type_name("DIR|FILE...");
  add_advice_options(command, arguments.get());
  if (context.tensorflow)
    add_documented_options(command, path, arguments.get());
  else
    path->required();
  add_format_option(command, &arguments->format, true);
  add_output_option(command, &arguments->output);
  command->add_flag("--full-stacks", arguments->full_stacks, "text: every frame of every stack");
  add_color_option(command, &arguments->color);
  command->add_flag("--anonymize", arguments->anonymize,
                    "recordings: replace names of files, functions, hosts and commands, except "
                    "those of public packages");
  command->add_flag("--no-seal", arguments->no_seal, "do not compress the files of the recording");
  command->add_flag("--no-source", arguments->no_source,
                    "text: do not read source files to show the text of lines");
  add_value(command, "--fail-on", "CONDITION,...", arguments->fail_on,
            "exit with 3 if a condition holds: a kind of finding such as leak, or "
            "peak>SIZE; separate several with commas");
  add_value(command, "--capacity", "SIZE", arguments->capacity,
            "memory size (24GiB, 24GB or bytes), to predict when a leak exhausts it");
  add_cost_options(command, &arguments->prices);
  CLI::Option* page = command->add_flag(
      context.tensorflow ? "--visualization,--visualize" : "--visualization",
      arguments->visualization, "also write the page, with memory over time, into --plot-dir");
  add_defaulted(command, "--plot-dir", "DIR", arguments->plot_folder, "created if missing")
      ->needs(page);
  add_defaulted(
      command, "--sensitivity", "X", arguments->sensitivity,
      "samples: smallest growth that counts, as a share of the level; smaller finds more");
  command->callback([arguments, &context] {
    context.exit_code =
        arguments->paths.empty()
            ? wrong_usage("--input or a path is required")
            : analyze_command(*arguments);
  });
}

}  // namespace gpumemprof

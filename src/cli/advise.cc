// gpumemprof advise: what to change, and what it would save.
#include <memory>

#include "analysis/advice/practices.h"
#include "analysis/analyze.h"
#include "cli/advise_trials.h"
#include "cli/command_words.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/temporary_folder.h"
#include "report/advice_text.h"
#include "report/describe/end_words.h"
#include "report/describe/explanation.h"
#include "report/describe/source_text.h"
#include "report/json/sections.h"
#include "report/text_report.h"

namespace gpumemprof {
namespace {

struct AdviseArguments {
  std::vector<std::string> paths;
  std::string format, output, capacity;
  CostArguments prices;
  std::optional<CostOptions> cost;  // as read from them
  bool no_measuring = false, no_seal = false;
  uint64_t steps = 0;
};

/// Writes the report of one recording. `trials` measure where a program can be run again; may be
/// null. `failure`: how the program ended; a recording of nothing is then an error.
int advise_recording(const std::vector<std::string>& paths, const AdviseArguments& arguments,
                     AdviseTrials* trials, const std::string& failure = "") {
  const std::string subject = paths.size() == 1 ? paths[0] : "";
  auto input = open_input_showing_progress(paths, !arguments.no_seal);
  if (!input) return report_error(subject, input.error());
  const auto analyzed = analyze(*input, {});
  if (!analyzed) return report_error(subject, analyzed.error());
  const Analysis& analysis = analyzed->analysis;
  const Tables& tables = analyzed->tables();
  if (!failure.empty() && analysis.events == 0) return wrong_usage(failure);
  auto report =
      advise_on_recording(analysis, tables, [&] { return input->events(); }, line_text());
  if (!report) return report_error(subject, report.error());
  if (trials) trials->measure(analysis, tables, &*report);
  // Without its holders a leak has no name.
  if (!analysis.unread_holders.empty())
    report->unknown.emplace_back("holders", analysis.unread_holders);
  report->failure = failure;
  const std::string format = report_format(arguments.format, arguments.output);
  std::string text;
  if (format != "json") {
    for (const Sentence& said : job_end_sentences(analysis, working_folder()))
      text += said.text + '\n';
    for (const std::string& line : caught_refusal_sentences(analysis, tables, working_folder()))
      text += line + '\n';
  }
  std::optional<Cost> cost;
  if (arguments.cost) {
    auto told = cost_of(analysis, tables, &*report, *arguments.cost);
    if (!told) return report_error("", told.error());
    cost = std::move(*told);
  }
  text += format == "json"
              ? advice_json(*report, tables, cost ? &*cost : nullptr)
              : advice_text(*report, next_beside_advice(analysis, tables, working_folder()));
  if (cost && format != "json") text += cost_text(*cost);
  if (format != "json") text = fitted_to_terminal(std::move(text), arguments.output);
  return write_output(text, arguments.output, paths);
}

/// False as well where `run` itself failed, as for a program that cannot be found.
bool has_recording(const std::string& folder) { return open_input({folder}).has_value(); }

/// What is accepted without effect would be taken for a different advice.
std::string wrong_together(const AdviseArguments& arguments, bool has_program) {
  if (!has_program && arguments.steps != 0) return "--steps goes with a program: -- COMMAND";
  if (!has_program && arguments.no_measuring)
    return "--no-measuring goes with a program: -- COMMAND";
  if (!arguments.capacity.empty() && !arguments.prices.is_given())
    return "--capacity goes with --price or --prices";
  return "";
}

int advise_program(std::vector<std::string> command, const AdviseArguments& arguments) {
  const auto folder = TemporaryFolder::make("gpumemprof-advise");
  if (!folder) return report_error("", folder.error());
  AdviseTrials trials(std::move(command), folder->path(), arguments.steps);
  const Result<TrialRun> base = trials.record("base", "", true);
  if (!base) return report_error("", base.error());
  // Running out of memory is what people come with: what was recorded until then has the answer. A
  // changed run that gets further has done other work, so that nothing can be measured.
  const bool is_failed = !base->failure.empty();
  if (!has_recording(base->folder))
    return wrong_usage(is_failed
                           ? base->failure
                           : "the program recorded nothing: gpumemprof run -- COMMAND says why");
  const bool is_measured = !arguments.no_measuring && !is_failed;
  return advise_recording({base->folder}, arguments, is_measured ? &trials : nullptr,
                          base->failure);
}

}  // namespace

void add_advise_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<AdviseArguments>();
  CLI::App* command =
      app.add_subcommand("advise", "suggest what to change in a program: waste before choices that "
                                   "have a price, the largest saving first in each");
  command->footer(
      "advise RECORDING... simulates each change on the recorded trace. advise -- COMMAND "
      "[ARGUMENTS...] records the program, runs it again with each change that can be made from "
      "outside, and measures the saving. These are full runs, about five: each takes the program's "
      "whole time and writes its files again. Recommended: --steps N, which ends each run after N "
      "steps; --no-measuring runs the program once.");
  add_value(command, "path", "DIR|FILE...", arguments->paths,
            "recordings: folders or .gmp files; or, after --, a program")
      ->required();
  add_format_option(command, &arguments->format, false);
  add_output_option(command, &arguments->output);
  command->add_flag("--no-seal", arguments->no_seal, "do not compress the files of the recording");
  command->add_flag("--no-measuring", arguments->no_measuring,
                    "with a program: run it once and simulate");
  add_value(command, "--steps", "N", arguments->steps,
            "with a program: end each run after this many optimizer steps (recommended; "
            "default: whole runs)")
      ->check(CLI::PositiveNumber);
  add_cost_options(command, &arguments->prices);
  add_value(command, "--capacity", "SIZE", arguments->capacity,
            "with --price: memory of the board, if it is not in the recording");
  command->callback([arguments, &context] {
    std::vector<std::string> words = words_after_dashes();
    const std::string wrong = wrong_together(*arguments, !words.empty());
    context.exit_code =
        wrong.empty() ? read_cost_options(arguments->prices, arguments->capacity, &arguments->cost)
                      : wrong_usage(wrong);
    if (context.exit_code != kExitOk) return;
    context.exit_code = words.empty() ? advise_recording(arguments->paths, *arguments, nullptr)
                                      : advise_program(std::move(words), *arguments);
  });
}

}  // namespace gpumemprof

// gpumemprof analyze: how high, when, and which lines held it.
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string_view>

#include "analysis/analysis.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "report/html_report.h"
#include "report/json_report.h"
#include "report/text_report.h"

namespace gpumemprof {
namespace {

struct AnalyzeArguments {
  std::vector<std::string> paths;
  std::string format;
  std::string output;
  std::string color = "auto";
  bool full_stacks = false;
  bool no_seal = false;
};

std::string format_of(const AnalyzeArguments& arguments) {
  if (!arguments.format.empty()) return arguments.format;
  const std::string_view name = arguments.output;
  if (name.ends_with(".json")) return "json";
  return name.ends_with(".html") || name.ends_with(".htm") ? "html" : "text";
}

bool use_color(const AnalyzeArguments& arguments) {
  if (arguments.color != "auto") return arguments.color == "always";
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color && *no_color) return false;
  const char* terminal = std::getenv("TERM");
  const bool to_stdout = arguments.output.empty() || arguments.output == "-";
  return to_stdout && isatty(STDOUT_FILENO) == 1 && terminal &&
         std::string_view(terminal) != "dumb";
}

std::string render(const Analysis& analysis, const Tables& tables,
                   const AnalyzeArguments& arguments) {
  const std::string format = format_of(arguments);
  if (format == "json") return json_report(analysis, tables);
  if (format == "html") return html_report(analysis, tables, {.working_folder = working_folder()});
  return text_report(analysis, tables,
                     {.color = use_color(arguments),
                      .full_stacks = arguments.full_stacks,
                      .working_folder = working_folder()});
}

int analyze(const AnalyzeArguments& arguments) {
  const std::string subject = arguments.paths.size() == 1 ? arguments.paths[0] : "";
  auto source = open_input(arguments.paths, !arguments.no_seal);
  if (!source) return report_error(subject, source.error());
  auto output = Output::open(arguments.output, arguments.paths);
  if (!output) return report_error("", output.error());
  std::string text;
  {
    Progress progress("analyzing");
    AnalysisOptions options;
    options.on_progress = [&](double done) { progress.update(done); };
    auto analysis = analyze_source(**source, options);
    if (!analysis) return report_error(subject, analysis.error());
    text = render(*analysis, (*source)->tables(), arguments);
  }
  if (auto done = output->write(text); !done) return report_output_error(*output, done.error());
  if (auto done = output->close(); !done) return report_output_error(*output, done.error());
  return kExitOk;
}

}  // namespace

void add_analyze_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<AnalyzeArguments>();
  CLI::App* command =
      app.add_subcommand("analyze", "say how high memory went, when, and which lines held it");
  command
      ->add_option("path", arguments->paths,
                   "folders that `run` wrote, or .gmp files; several are read as one")
      ->required()
      ->type_name("DIR|FILE...");
  command
      ->add_option("--format", arguments->format,
                   "text, json or html (default: as --output's name ends, else text)")
      ->check(CLI::IsMember({"text", "json", "html"}));
  command
      ->add_option("-o,--output", arguments->output,
                   "write to this file instead of standard output")
      ->type_name("FILE");
  command->add_flag("--full-stacks", arguments->full_stacks, "text: every frame of every stack");
  command->add_option("--color", arguments->color, "auto, always or never; NO_COLOR is obeyed")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  command->add_flag("--no-seal", arguments->no_seal,
                    "leave the files of the recording as they are");
  command->callback([arguments, &context] { context.exit_code = analyze(*arguments); });
}

}  // namespace gpumemprof

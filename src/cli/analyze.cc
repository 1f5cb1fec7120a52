// gpumemprof analyze: how high, when, and which lines held it.
#include <memory>

#include "analysis/analysis.h"
#include "cli/analyze_telemetry.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/render.h"
#include "report/html_report.h"
#include "report/json_report.h"
#include "report/text_report.h"
#include "trace/anonymous_source.h"

namespace gpumemprof {
namespace {

std::string render(const Analysis& analysis, const Tables& tables,
                   const AnalyzeArguments& arguments) {
  const std::string format = report_format(arguments.format, arguments.output);
  if (format == "json") return json_report(analysis, tables);
  if (format == "html") return html_report(analysis, tables, {.working_folder = working_folder()});
  return text_report(analysis, tables,
                     {.color = report_color(arguments.color, arguments.output),
                      .full_stacks = arguments.full_stacks,
                      .working_folder = working_folder()});
}

int analyze(const AnalyzeArguments& arguments) {
  const std::string subject = arguments.paths.size() == 1 ? arguments.paths[0] : "";
  if (is_telemetry_input(arguments.paths)) {
    if (!arguments.anonymize) return analyze_telemetry_file(arguments);
    return report_error(subject, {ErrorCode::kUsage,
                                  "--anonymize is for recordings and snapshots, "
                                  "not for samples",
                                  std::nullopt});
  }
  if (!(arguments.sensitivity > 0 && arguments.sensitivity <= 1)) return wrong_sensitivity();
  auto source = open_input(arguments.paths, !arguments.no_seal);
  if (!source) return report_error(subject, source.error());
  if (arguments.anonymize) {
    *source = std::make_unique<AnonymousSource>(std::move(*source), std::make_shared<Anonymizer>());
  }
  auto output = Output::open(arguments.output, arguments.paths);
  if (!output) return report_error("", output.error());
  std::string text;
  std::vector<Picture> pictures;
  {
    Progress progress("analyzing");
    AnalysisOptions options;
    options.on_progress = [&](double done) { progress.update(done); };
    auto analysis = analyze_source(**source, options);
    if (!analysis) return report_error(subject, analysis.error());
    text = render(*analysis, (*source)->tables(), arguments);
    if (arguments.visualization) pictures = recording_pictures(*analysis, (*source)->tables());
  }
  if (auto done = output->write(text); !done) return report_output_error(*output, done.error());
  if (auto done = output->close(); !done) return report_output_error(*output, done.error());
  return pictures.empty() ? kExitOk : say_and_write_pictures(pictures, arguments);
}

}  // namespace

void add_analyze_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<AnalyzeArguments>();
  CLI::App* command =
      app.add_subcommand("analyze", "say how high memory went, when, and which lines held it");
  command
      ->add_option("path", arguments->paths,
                   "folders that `run` wrote, or .gmp files, several are read as one; or one file "
                   "that track, monitor, diagnose or a tracker in Python wrote")
      ->required()
      ->type_name("DIR|FILE...");
  command
      ->add_option("--format", arguments->format,
                   "text, json or html (default: as --output's name ends, else text)")
      ->check(CLI::IsMember({"text", "txt", "json", "html"}));
  command
      ->add_option("-o,--output", arguments->output,
                   "write to this file instead of standard output")
      ->type_name("FILE");
  command->add_flag("--full-stacks", arguments->full_stacks, "text: every frame of every stack");
  command->add_option("--color", arguments->color, "auto, always or never; NO_COLOR is obeyed")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  command->add_flag("--anonymize", arguments->anonymize,
                    "recordings: replace the names of files, functions, hosts and commands that "
                    "are not public packages'");
  command->add_flag("--no-seal", arguments->no_seal,
                    "leave the files of the recording as they are");
  command->add_flag("--visualization", arguments->visualization,
                    "also draw memory over time, as SVG files in --plot-dir");
  command->add_option("--plot-dir", arguments->plot_folder, "made where it is missing")
      ->type_name("DIR")
      ->capture_default_str();
  command
      ->add_option("--sensitivity", arguments->sensitivity,
                   "samples: the least growth that counts, as a share of the level; smaller finds "
                   "more")
      ->type_name("X")
      ->capture_default_str();
  command->callback([arguments, &context] { context.exit_code = analyze(*arguments); });
}

}  // namespace gpumemprof

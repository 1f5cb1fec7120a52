// gpumemprof diff: what a second run needs more, and which lines.
#include "analysis/diff.h"

#include <memory>

#include "analysis/pick_device.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/render.h"
#include "report/diff_report.h"
#include "report/user_code.h"
#include "trace/anonymous_source.h"

namespace gpumemprof {
namespace {

struct DiffArguments {
  std::string a, b;
  std::string device;
  std::string format;
  std::string output;
  std::string color = "auto";
  size_t rows = 10;
  bool anonymize = false;
  bool no_seal = false;
};

/// One of the two runs, read to its end.
struct Run {
  std::unique_ptr<EventSource> source;
  Analysis analysis;
  const DeviceAnalysis* device = nullptr;
  DiffSide side() const { return {&analysis, &source->tables(), device}; }
};

/// Into `run`, which must not move afterwards.
Status read_run(const std::string& path, const DiffArguments& arguments,
                const std::shared_ptr<Anonymizer>& names, Run* run) {
  auto source = open_input({path}, !arguments.no_seal);
  if (!source) return std::unexpected(source.error());
  run->source = std::move(*source);
  if (names) run->source = std::make_unique<AnonymousSource>(std::move(run->source), names);
  Progress progress("reading " + path);
  AnalysisOptions options;
  options.on_progress = [&](double done) { progress.update(done); };
  auto analysis = analyze_source(*run->source, options);
  if (!analysis) return std::unexpected(analysis.error());
  run->analysis = std::move(*analysis);
  auto device = pick_device(run->analysis, run->source->tables(), arguments.device);
  if (!device) return std::unexpected(device.error());
  run->device = *device;
  return {};
}

std::string render(const Diff& diff, const DiffArguments& arguments) {
  const std::string format = report_format(arguments.format, arguments.output);
  DiffOptions options{.color = report_color(arguments.color, arguments.output),
                      .rows = arguments.rows,
                      .working_folder = working_folder()};
  if (format == "json") return diff_json(diff);
  return format == "html" ? diff_html(diff, options) : diff_text(diff, options);
}

int diff(const DiffArguments& arguments) {
  const auto names = arguments.anonymize ? std::make_shared<Anonymizer>() : nullptr;
  Run a, b;
  if (auto done = read_run(arguments.a, arguments, names, &a); !done) {
    return report_error(arguments.a, done.error());
  }
  if (auto done = read_run(arguments.b, arguments, names, &b); !done) {
    return report_error(arguments.b, done.error());
  }
  auto output = Output::open(arguments.output, {arguments.a, arguments.b});
  if (!output) return report_error("", output.error());
  const std::string text = render(diff_runs(a.side(), b.side(), headline_node), arguments);
  if (auto done = output->write(text); !done) return report_output_error(*output, done.error());
  if (auto done = output->close(); !done) return report_output_error(*output, done.error());
  return kExitOk;
}

}  // namespace

void add_diff_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<DiffArguments>();
  CLI::App* command =
      app.add_subcommand("diff", "say what a second run needs more than a first, and which lines");
  command->add_option("A", arguments->a, "the run to compare with: as for analyze")
      ->required()
      ->type_name("DIR|FILE");
  command->add_option("B", arguments->b, "the run to look at")->required()->type_name("DIR|FILE");
  command
      ->add_option("--device", arguments->device,
                   "cpu, cuda:1, …; PID/cuda:1 for one process (default: each run's main device)")
      ->type_name("NAME");
  command
      ->add_option("--format", arguments->format,
                   "text, json or html (default: as --output's name ends, else text)")
      ->check(CLI::IsMember({"text", "txt", "json", "html"}));
  command
      ->add_option("-o,--output", arguments->output,
                   "write to this file instead of standard output")
      ->type_name("FILE");
  command->add_option("--rows", arguments->rows, "text and html: how many rows a table shows")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--color", arguments->color, "auto, always or never; NO_COLOR is obeyed")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  command->add_flag("--anonymize", arguments->anonymize,
                    "replace the names of files, functions, hosts and commands that are not "
                    "public packages'");
  command->add_flag("--no-seal", arguments->no_seal, "leave the files of a recording as they are");
  command->callback([arguments, &context] { context.exit_code = diff(*arguments); });
}

}  // namespace gpumemprof

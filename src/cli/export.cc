// gpumemprof export: the events themselves, for other people's scripts.
#include <memory>

#include "cli/commands.h"
#include "cli/export_snapshot.h"
#include "cli/input.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "report/event_export.h"

namespace gpumemprof {
namespace {

struct ExportArguments {
  std::vector<std::string> paths;
  std::string to;
  std::string output;
  bool no_seal = false;
};

int export_recording(const ExportArguments& arguments) {
  if (arguments.to == "snapshot") return export_as_snapshot(arguments.paths, arguments.output);
  const std::string subject = arguments.paths.size() == 1 ? arguments.paths[0] : "";
  auto source = open_input(arguments.paths, !arguments.no_seal);
  if (!source) return report_error(subject, source.error());
  auto output = Output::open(arguments.output, arguments.paths);
  if (!output) return report_error("", output.error());
  bool output_failed = false;
  const auto sink = [&](std::string_view text) {
    Status written = output->write(text);
    output_failed = !written;
    return written;
  };
  Status done;
  {
    Progress progress("exporting");
    const ExportFormat format =
        arguments.to == "csv" ? ExportFormat::kCsv : ExportFormat::kJsonLines;
    done = export_events(**source, format, sink, [&](double share) { progress.update(share); });
  }
  if (!done)
    return output_failed ? report_output_error(*output, done.error())
                         : report_error(subject, done.error());
  if (auto closed = output->close(); !closed) return report_output_error(*output, closed.error());
  return kExitOk;
}

}  // namespace

void add_export_command(CLI::App& app, CommandContext& context) {
  auto arguments = std::make_shared<ExportArguments>();
  CLI::App* command = app.add_subcommand("export", "write every event, one a line");
  command
      ->add_option("path", arguments->paths,
                   "folders that `run` wrote, or .gmp files; several are read as one")
      ->required()
      ->type_name("DIR|FILE...");
  command->add_option("--to", arguments->to, "jsonl, csv, or snapshot (from a snapshot)")
      ->required()
      ->check(CLI::IsMember({"jsonl", "csv", "snapshot"}));
  command
      ->add_option("-o,--output", arguments->output,
                   "write to this file instead of standard output")
      ->type_name("FILE");
  command->add_flag("--no-seal", arguments->no_seal,
                    "leave the files of the recording as they are");
  command->callback([arguments, &context] { context.exit_code = export_recording(*arguments); });
}

}  // namespace gpumemprof

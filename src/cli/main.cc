// The gpumemprof command: every subcommand is a file of its own.
#include <cstdio>
#include <iostream>
#include <string_view>

#include "cli/commands.h"
#include "cli/watch.h"

namespace {

using namespace gpumemprof;

int run_command_line(int argc, char** argv) {
  CLI::App app{
      "Tells where the memory of a PyTorch program goes: records every allocation, explains the "
      "peak."};
  app.name("gpumemprof");
  app.footer(
      "Start with: gpumemprof run -- python train.py\nExit codes: 0 ok, 1 the tool failed, 2 usage "
      "or bad "
      "input. `run` ends as the program it ran.");
  app.set_version_flag("--version", "gpumemprof " GPUMEMPROF_VERSION);
  app.require_subcommand(1);
  CommandContext context;
  context.program_path = argv[0];
  add_run_command(app, context);
  add_info_command(app, context);
  add_monitor_command(app, context);
  add_track_command(app, context);
  add_analyze_command(app, context);
  add_diff_command(app, context);
  add_explain_oom_command(app, context);
  add_diagnose_command(app, context);
  add_lines_command(app, context);
  add_export_command(app, context);
  add_seal_command(app, context);
  try {
    app.parse(argc, argv);  // callbacks run in here; CLI11 speaks in exceptions, we do not
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0)
      return app.exit(error, std::cout, std::cerr);  // --help, --version
    std::string wrong = error.what();
    if (app.get_subcommands().empty() && argc > 1 && argv[1][0] != '-') {
      std::string names;
      for (const CLI::App* command : app.get_subcommands({})) names += ' ' + command->get_name();
      wrong = "'" + std::string(argv[1]) + "' is no command; there are" + names;
    }
    return report_error("", {ErrorCode::kUsage, wrong + " (see gpumemprof --help)", std::nullopt});
  }
  return context.exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  // Before anything else: a tracker that is told to stop while it starts still leaves a whole file.
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "track" || command == "monitor") gpumemprof::hold_stop_signals();
  const int exit_code = run_command_line(argc, argv);
  // Help and tables that did not reach a full disk or a closed pipe are a failure, not a success.
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::cout.good()) return exit_code;
  return exit_code == gpumemprof::kExitOk ? gpumemprof::kExitToolFailed : exit_code;
}

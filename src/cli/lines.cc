// gpumemprof lines: memory line by line of a script, by the Python that is active.
#include <cstdio>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/help.h"
#include "cli/python_program.h"

namespace gpumemprof {
namespace {

/// The script's exit code, signals and streams are its own.
int run_lines(const std::vector<std::string>& words) {
  std::vector<std::string> arguments = {"-m", "gpumemprof.lines"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  return become_python(std::move(arguments));
}

}  // namespace

void add_lines_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "lines", "run a script and report the memory of each line in its @profile_lines functions");
  // The script's own options are its own, --help included.
  command->prefix_command();
  command->set_help_flag();
  command->callback([command, &context] {
    const std::vector<std::string> all = command->remaining();
    if (all.empty() || all[0] == "--help" || all[0] == "-h") {
      if (all.empty()) {
        context.exit_code = wrong_usage("lines: name the script (see gpumemprof lines --help)");
        return;
      }
      const std::string help = command->get_description() +
                               "\nUsage: gpumemprof lines SCRIPT [ARGUMENTS...]\n\n" +
                               command->get_footer() + '\n';
      std::fputs(help_on_terminal(help).c_str(), stdout);
      return;
    }
    context.exit_code = run_lines(all);
  });
}

}  // namespace gpumemprof

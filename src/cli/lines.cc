// gpumemprof lines: memory line by line of a script, by the Python that is active.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/descriptor_limit.h"
#include "cli/active_python.h"
#include "cli/commands.h"

namespace gpumemprof {
namespace {

/// Replaces this process: the script's exit code, signals and streams are its own.
int run_lines(const std::vector<std::string>& words) {
  std::vector<std::string> command = {active_python(), "-m", "gpumemprof.lines"};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  restore_descriptor_limit();
  execvp(argv[0], argv.data());
  return report_error(command[0], {ErrorCode::kSystem,
                                   std::string("cannot be started: ") + strerror(errno) +
                                       "; set GPUMEMPROF_PYTHON to the Python to use",
                                   std::nullopt});
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
        context.exit_code = report_error(
            "", {ErrorCode::kUsage, "lines: name the script (see gpumemprof lines --help)",
                 std::nullopt});
        return;
      }
      std::printf("%s\nUsage: gpumemprof lines SCRIPT [ARGUMENTS...]\n\n%s\n",
                  command->get_description().c_str(), command->get_footer().c_str());
      return;
    }
    context.exit_code = run_lines(all);
  });
}

}  // namespace gpumemprof

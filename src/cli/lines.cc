// gpumemprof lines: memory line by line of a script, by the Python that is active.
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace gpumemprof {
namespace {

/// The Python beside this command (a virtual environment that is not activated), else that of PATH:
/// the one where the package is installed with the command comes first.
std::string active_python() {
  if (const char* chosen = std::getenv("GPUMEMPROF_PYTHON"); chosen && *chosen) return chosen;
  if (const char* venv = std::getenv("VIRTUAL_ENV"); venv && *venv) {
    const std::string python = std::string(venv) + "/bin/python";
    if (access(python.c_str(), X_OK) == 0) return python;
  }
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length > 0) {
    std::string path(self, static_cast<size_t>(length));
    path.resize(path.rfind('/'));
    if (access((path + "/python").c_str(), X_OK) == 0) return path + "/python";
  }
  return "python3";
}

/// Replaces this process: the script's exit code, signals and streams are its own.
int run_lines(const std::vector<std::string>& words) {
  std::vector<std::string> command = {active_python(), "-m", "gpumemprof.lines"};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return report_error(command[0], {ErrorCode::kSystem,
                                   std::string("cannot be started: ") + strerror(errno) +
                                       "; set GPUMEMPROF_PYTHON to the Python to use",
                                   std::nullopt});
}

}  // namespace

void add_lines_command(CLI::App& app, CommandContext& context) {
  CLI::App* command = app.add_subcommand(
      "lines", "run a script and report the memory of each line of its @profile_lines functions");
  // The script's own options are its own, --help included.
  command->prefix_command();
  command->set_help_flag();
  command->footer("gpumemprof lines SCRIPT [ARGUMENTS...]");
  command->callback([command, &context] {
    const std::vector<std::string> all = command->remaining();
    if (all.empty() || all[0] == "--help" || all[0] == "-h") {
      if (all.empty()) {
        context.exit_code = report_error(
            "", {ErrorCode::kUsage, "lines: name the script (see gpumemprof lines --help)",
                 std::nullopt});
        return;
      }
      std::puts(
          "Run a script and report the memory of each line of its @profile_lines functions\n"
          "Usage: gpumemprof lines SCRIPT [ARGUMENTS...]");
      return;
    }
    context.exit_code = run_lines(all);
  });
}

}  // namespace gpumemprof

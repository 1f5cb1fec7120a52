#include "cli/python_program.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/descriptor.h"
#include "cli/commands.h"

namespace gpumemprof {
namespace {

constexpr const char* kStart = R"(import sys
sys.path[:] = [place for place in sys.path if place]
tool, module = sys.argv[1:3]
sys.argv[:3] = [tool]
try:
    from importlib import import_module
    main = import_module(module).main
except ModuleNotFoundError as error:
    if not str(error.name).startswith("gpumemprof"):
        raise
    sys.stderr.write(f"{tool}: {sys.executable} has no gpumemprof of this version: "
                     "install it there, or set GPUMEMPROF_PYTHON to the Python to use\n")
    sys.exit(2)
sys.exit(main(sys.argv[1:]))
)";

}  // namespace

int become_python(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), active_python());
  std::vector<char*> argv;
  for (std::string& word : arguments) argv.push_back(word.data());
  argv.push_back(nullptr);
  restore_descriptor_limit();
  execvp(argv[0], argv.data());
  return report_error(arguments[0], {ErrorCode::kSystem,
                                     std::string("cannot be started: ") + strerror(errno) +
                                         "; set GPUMEMPROF_PYTHON to the Python to use"});
}

int become_child(const std::string& module, const std::vector<std::string>& words) {
  std::vector<std::string> arguments = {"-c", kStart, tool_name(),
                                        "gpumemprof._children." + module + ".__main__"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  return become_python(std::move(arguments));
}

int become_child(const std::string& module, const nlohmann::json& options,
                 const std::vector<std::string>& words) {
  std::vector<std::string> all = {
      options.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), "--"};
  all.insert(all.end(), words.begin(), words.end());
  return become_child(module, all);
}

namespace {

/// Not a folder of that name, which access() would take.
bool can_be_started(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string active_python() {
  if (const char* chosen = std::getenv("GPUMEMPROF_PYTHON"); chosen && *chosen) return chosen;
  if (const char* venv = std::getenv("VIRTUAL_ENV"); venv && *venv) {
    const std::string python = std::string(venv) + "/bin/python";
    if (can_be_started(python)) return python;
  }
  const std::string self = own_program();
  const std::string beside = self.substr(0, self.rfind('/') + 1) + "python";
  return self.starts_with('/') && can_be_started(beside) ? beside : "python3";
}

std::string own_program() {
  std::error_code error;
  const std::string path = std::filesystem::read_symlink("/proc/self/exe", error).string();
  return error ? "gpumemprof" : path;
}

}  // namespace gpumemprof

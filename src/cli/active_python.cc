#include "cli/python_program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

namespace gpumemprof {
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
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  if (length > 0) {
    std::string path(self, static_cast<size_t>(length));
    path.resize(path.rfind('/'));
    if (can_be_started(path + "/python")) return path + "/python";
  }
  return "python3";
}

std::string own_program() {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  return length > 0 ? std::string(self, static_cast<size_t>(length)) : "gpumemprof";
}

}  // namespace gpumemprof

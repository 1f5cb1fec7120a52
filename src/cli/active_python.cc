#include "cli/python_program.h"

#include <unistd.h>

#include <cstdlib>

namespace gpumemprof {

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

std::string own_program() {
  char self[4096];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self);
  return length > 0 ? std::string(self, static_cast<size_t>(length)) : "gpumemprof";
}

}  // namespace gpumemprof

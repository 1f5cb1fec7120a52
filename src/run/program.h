// Looks at a program before it is started: which file will run, and can the probe be loaded into
// it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// The ids that decide whether the kernel starts a file in secure mode, in which the loader ignores
/// LD_PRELOAD.
struct Caller {
  uid_t uid = 0, euid = 0;
  gid_t gid = 0, egid = 0;
  bool no_new_privileges = false;
};
Caller current_caller();

struct Program {
  std::string path;  ///< what is executed: PATH searched as execvp does
  /// Why the probe cannot be in it, to be read after "NAME is " ("a 32-bit program"). Empty where
  /// it can.
  std::string unrecordable;
  /// The probe cannot be in it but may be in what it starts (a static launcher), so LD_PRELOAD is
  /// set.
  bool children_recordable = false;
};

/// Resolves and inspects a command; `search_path` is the caller's PATH.
/// Errors: kNotFound with one line where there is nothing that may be executed.
Result<Program> inspect_program(const std::string& command, const std::string& search_path,
                                const Caller& caller);

/// The words of a "#!" line, the interpreter first; empty where the text does not begin with one.
/// `env` is looked through: "#!/usr/bin/env -S X=1 python3 -u" gives {"/usr/bin/env", "python3"}.
std::vector<std::string> script_interpreters(std::string_view first_bytes);

}  // namespace gpumemprof

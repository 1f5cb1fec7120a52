// What only Python has libraries for: this process becomes one of the package's children.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace gpumemprof {

/// Replaces this process by the active Python: exit code, signals and streams are then its own.
/// Returns only if that fails: says why, and returns the exit code.
int become_python(std::vector<std::string> arguments);

/// The same with `module` of our package, which has main(words). Nothing is imported from the
/// working folder. Where the package is not installed, one line says so (exit code 2).
int become_child(const std::string& module, const std::vector<std::string>& words);
/// The same with its words behind options, which the module reads as JSON.
int become_child(const std::string& module, const nlohmann::json& options,
                 const std::vector<std::string>& words);

// The Python in which our package is looked for.

/// $GPUMEMPROF_PYTHON, else the Python of the active virtual environment, else the one beside this
/// command (a virtual environment that is not activated), else that of PATH.
std::string active_python();

/// The file of this command; "gpumemprof" where the system does not say.
std::string own_program();

}  // namespace gpumemprof

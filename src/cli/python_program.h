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

}  // namespace gpumemprof

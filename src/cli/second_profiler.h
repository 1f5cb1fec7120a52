// Another package, stormlog, installs a command gpumemprof, and up to 0.2.6 a package of that name.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace gpumemprof {

/// [{"package", "version", "folder"}]: what of that kind the first of `folders` (site-packages)
/// that has any has.
nlohmann::ordered_json second_profilers(const std::vector<std::string>& folders);

/// One line for each, or nothing.
std::string second_profiler_text(const nlohmann::ordered_json& found);

}  // namespace gpumemprof

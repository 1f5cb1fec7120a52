// Where the files lie that stand beside a recording.
#pragma once

#include <string>
#include <vector>

namespace gpumemprof {

/// The folders that `paths` name, and those in which the files lie that they name; each once, sorted.
std::vector<std::string> folders_of(const std::vector<std::string>& paths);

}  // namespace gpumemprof

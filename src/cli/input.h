// What commands do before they read.
#pragma once

#include <string>
#include <vector>

#include "input/input.h"

namespace gpumemprof {

/// open_input() with a progress line.
Result<Input> open_input_showing_progress(const std::vector<std::string>& paths, bool seal);

/// Empty where it is not known; then paths are shown whole.
std::string working_folder();

}  // namespace gpumemprof

// How full the machine was while the program was recorded, in words and as a picture.
#pragma once

#include <string>
#include <vector>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Lines for a terminal; none where the recording has no samples of the machine.
std::vector<std::string> machine_lines(const Analysis& analysis);

/// The same for a page, with a picture for each device: used by everybody, and by this run.
std::string machine_section(const Analysis& analysis);

}  // namespace gpumemprof

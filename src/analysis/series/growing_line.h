// The line behind steady growth, or the command that would name it.
#pragma once

#include <string>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Of what was made since the set-up and stayed, the line that made most of it; where that is not
/// known, the line that held most at the end. Adds it to the title, stack and evidence. False where
/// it is less than half of `grown_bytes`.
bool name_growing_line(const DeviceAnalysis& device, const Tables& tables, double grown_bytes,
                       Finding* finding);

/// What names the lines where nothing has named one.
std::string fix_of_growth(const DeviceAnalysis& device);

}  // namespace gpumemprof

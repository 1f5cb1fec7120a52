// What memory is, in words: the part of the text report about categories, modules and phases.
#pragma once

#include <string>
#include <vector>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Lines under "What it is": categories at the peak, then the largest modules, then phases. Empty
/// where nothing is known. Printable.
std::vector<std::string> category_lines(const DeviceAnalysis& device, const Tables& tables,
                                        size_t most_modules);

}  // namespace gpumemprof

// An analysis as the gate compares it: the peak of each kind of device, and its lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/compare/memory_baseline.h"
#include "analysis/line_text.h"

namespace gpumemprof {

inline constexpr size_t kMostPeakLines = 40;

/// Kinds in the order of their names. `folder`: what files are named relative to.
std::vector<PeakMemory> peak_memories(const Analysis& analysis, const Tables& tables,
                                      std::string_view folder, const LineText& line_text);

}  // namespace gpumemprof

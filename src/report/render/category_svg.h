// Categories over time as a stacked SVG, with steps and phases marked.
#pragma once

#include <string>

#include "analysis/analysis.h"

namespace gpumemprof {

/// A <figure>: what is live at each sample, stacked by category, the ends of steps as ticks and the
/// program's phases as bars below, a legend with what each category held at the peak. Empty where
/// no category is known.
std::string category_figure(const Analysis& analysis, const DeviceAnalysis& device,
                            const Tables& tables);

}  // namespace gpumemprof

// A recording and what `run` sampled of the machine beside it.
#pragma once

#include <string>
#include <vector>

#include "analysis/analysis.h"
#include "base/error.h"

namespace gpumemprof {

/// analyze_whole() of `source`, which was opened from `paths`, with the samples in these folders:
/// what devices said of the processes, Analysis::machine, and how the programs ended. What could not be read goes into
/// `problems`, one sentence each.
Result<Analysis> analyze_with_samples(EventSource& source, const std::vector<std::string>& paths,
                                      AnalysisOptions options, std::vector<std::string>* problems);

}  // namespace gpumemprof

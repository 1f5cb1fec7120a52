// Behind `estimate -- CMD` and `estimate --model`: two traced steps, merged and simulated.
#pragma once

#include "cli/estimate_arguments.h"

namespace gpumemprof {

/// Traces in a child process, predicts and prints. The exit code.
int estimate_by_tracing(const EstimateArguments& arguments);

}  // namespace gpumemprof

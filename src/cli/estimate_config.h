// The closed form behind `estimate --config`.
#pragma once

#include "cli/estimate_arguments.h"

namespace gpumemprof {

/// Reads the configuration, predicts and prints. The exit code.
int estimate_from_configuration(const EstimateArguments& arguments);

}  // namespace gpumemprof

// `estimate --target`: an exported model on a processor.
#pragma once

#include "cli/estimate_arguments.h"

namespace gpumemprof {

/// `model` is the path. The exit code.
int estimate_exported(const EstimateArguments& arguments, const std::string& model);

}  // namespace gpumemprof

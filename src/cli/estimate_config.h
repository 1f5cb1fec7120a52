// The closed form behind `estimate --config`: the options that concern configurations alone, and
// what becomes of them.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/estimate_arguments.h"

namespace gpumemprof {

/// Declares --sequence, --tp, --pp, --kv-dtype and the like. Each is stored as a line "KEY=VALUE"
/// in `arguments->options`, where --set puts its own.
void add_configuration_options(CLI::App& command, EstimateArguments* arguments);

/// Reads the configuration, predicts and prints. The exit code.
int estimate_from_configuration(const EstimateArguments& arguments);

}  // namespace gpumemprof

// The part of `analyze` that reads what an out-of-memory error left.
#pragma once

#include "cli/analyze_telemetry.h"

namespace gpumemprof {

/// Prints the dump at the one path, whose kind is kOomDump. Returns the exit code.
int analyze_oom_dump(const AnalyzeArguments& arguments);

}  // namespace gpumemprof

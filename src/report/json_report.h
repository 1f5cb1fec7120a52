// The analysis for programs: schema "gpumemprof.analysis/1", docs/schemas/analysis.schema.json.
#pragma once

#include <string>

#include "analysis/analysis.h"

namespace gpumemprof {

/// One JSON object and a newline. Keys are only ever added; what is not known is null, and the
/// device's "unknown" object says why. `indent` < 0 writes it on one line.
std::string json_report(const Analysis& analysis, const Tables& tables, int indent = 1);

}  // namespace gpumemprof

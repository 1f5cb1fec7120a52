// The analysis for programs: schema "gpumemprof.analysis/1", docs/schemas/analysis.schema.json.
#pragma once

#include <string>

#include "analysis/advice.h"
#include "analysis/analysis.h"
#include "estimate/cost.h"

namespace gpumemprof {

/// One JSON object and a newline. Keys are only ever added; what is not known is null, and the
/// device's "unknown" object says why. `indent` < 0 writes it on one line.
/// `advice`, `cost`: what was asked for beside it, in members of their own; may be null.
std::string json_report(const Analysis& analysis, const Tables& tables, int indent = 1,
                        const AdviceReport* advice = nullptr, const Cost* cost = nullptr);

}  // namespace gpumemprof

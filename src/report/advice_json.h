// Recommendations for programs (docs/schemas/advice.schema.json).
#pragma once

#include <string>

#include "analysis/advice.h"
#include "trace/tables.h"

namespace gpumemprof {

/// "gpumemprof.advice/1": what to change, the most bytes first, then what could not be told.
std::string advice_json(const AdviceReport& report, const Tables& tables);

}  // namespace gpumemprof

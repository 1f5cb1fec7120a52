// Findings for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "analysis/analysis.h"

namespace gpumemprof {

/// `findings` of schema "gpumemprof.analysis/1".
nlohmann::ordered_json findings_json(const Analysis& analysis, const Tables& tables);

}  // namespace gpumemprof

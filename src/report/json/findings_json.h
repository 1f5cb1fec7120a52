// Findings, the score and the patterns of memory over time, for programs.
#pragma once

#include <nlohmann/json.hpp>

#include "analysis/analysis.h"

namespace gpumemprof {

/// `findings` of schema "gpumemprof.analysis/1".
nlohmann::ordered_json findings_json(const Analysis& analysis, const Tables& tables);
/// {"value", "parts"}, and "reason" where there is no value.
nlohmann::ordered_json score_json(const Score& score);
nlohmann::ordered_json patterns_json(const std::vector<SeriesPattern>& patterns);

}  // namespace gpumemprof

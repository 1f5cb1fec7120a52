// The score and the patterns of memory over time, for programs and in words.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/series/series.h"

namespace gpumemprof {

/// {"value", "parts"}, and "reason" where there is no value.
nlohmann::ordered_json score_json(const Score& score);
nlohmann::ordered_json patterns_json(const std::vector<SeriesPattern>& patterns);
/// "Score: 8.2 of 10 (growth 10.0, …)." or "Score: none, because ….", without a newline.
std::string score_sentence(const Score& score);

}  // namespace gpumemprof

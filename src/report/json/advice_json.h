// Recommendations for programs (docs/schemas/advice.schema.json).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "analysis/advice.h"
#include "estimate/cost.h"
#include "trace/tables.h"

namespace gpumemprof {

/// "gpumemprof.advice/1": what to change, as order_advice(), then what is unknown.
nlohmann::ordered_json advice_root(const AdviceReport& report, const Tables& tables);
/// The same as text; `cost` in a member of its own, may be null.
std::string advice_json(const AdviceReport& report, const Tables& tables,
                        const Cost* cost = nullptr);

}  // namespace gpumemprof

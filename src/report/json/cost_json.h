// What a run costs, for programs: "cost" in docs/schemas/analysis.schema.json and
// advice.schema.json.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "estimate/cost.h"

namespace gpumemprof {

nlohmann::ordered_json cost_json(const Cost& cost);

}  // namespace gpumemprof

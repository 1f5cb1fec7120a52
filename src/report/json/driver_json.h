// The driver's allocations and their sum, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Null where the driver was not recorded.
nlohmann::ordered_json driver_json(const Analysis& analysis, const Tables& tables);

}  // namespace gpumemprof

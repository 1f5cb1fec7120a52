// What the driver handed out and how it adds up.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Null where the driver was not recorded.
nlohmann::ordered_json driver_json(const Analysis& analysis, const Tables& tables);

}  // namespace gpumemprof

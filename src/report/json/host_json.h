// The host's memory during a run, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/analysis.h"

namespace gpumemprof {

/// "host_memory" of docs/schemas/analysis.schema.json; null where no samples tell of it.
nlohmann::ordered_json host_json(const Analysis& analysis);

}  // namespace gpumemprof

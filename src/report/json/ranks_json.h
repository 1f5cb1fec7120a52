// A job's ranks in JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "analysis/analysis.h"

namespace gpumemprof {

/// `ranks` of gpumemprof.analysis/1; null where it is no job.
nlohmann::ordered_json ranks_json(const Analysis& analysis, const Tables& tables);

}  // namespace gpumemprof

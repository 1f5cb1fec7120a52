// How the recorded program ended, for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/analysis.h"

namespace gpumemprof {

/// "end" of docs/schemas/analysis.schema.json.
nlohmann::ordered_json ends_json(const ProgramEnds& ends);
/// "end.caught" of the same: requests that were refused and did not end the program.
nlohmann::ordered_json caught_refusals_json(const Analysis& analysis, const Tables& tables);

}  // namespace gpumemprof

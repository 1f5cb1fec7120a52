// How the recorded program ended, for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/pass/program_end.h"

namespace gpumemprof {

/// "end" of docs/schemas/analysis.schema.json.
nlohmann::ordered_json ends_json(const ProgramEnds& ends);

}  // namespace gpumemprof

// What a run costs, for people at a terminal.
#pragma once

#include <string>

#include "estimate/cost.h"

namespace gpumemprof {

/// A section behind a report: its title and its sentences.
std::string cost_text(const Cost& cost);

}  // namespace gpumemprof

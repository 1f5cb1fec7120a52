// Recommendations in the page of an analysis.
#pragma once

#include <string>

#include "analysis/advice.h"

namespace gpumemprof {

/// A table of what to change, the most bytes first, with how each saving is known. Empty where
/// there is nothing to say; one sentence where nobody looked.
std::string advice_section(const AdviceReport& report);

}  // namespace gpumemprof

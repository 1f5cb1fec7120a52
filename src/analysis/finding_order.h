// The order in which findings are shown.
#pragma once

#include <vector>

#include "analysis/finding.h"

namespace gpumemprof {

/// The most severe first; of equals those with the most bytes at stake; of equals as they came.
void sort_findings(std::vector<Finding>* findings);

}  // namespace gpumemprof

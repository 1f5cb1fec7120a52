// What several processes of a run show alike.
#pragma once

#include <vector>

#include "analysis/finding.h"
#include "trace/tables.h"

namespace gpumemprof {

/// Workers do what their fellows do: of what is no warning the largest is told, with how many
/// processes have the like. DeviceAnalysis::patterns has all.
void fold_like_findings(const Tables& tables, std::vector<Finding>* found);

}  // namespace gpumemprof

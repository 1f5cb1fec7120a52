// The same leak in several processes of a run.
#pragma once

#include <vector>

#include "analysis/analysis.h"

namespace gpumemprof {

/// One bug in several processes, workers or ranks, is one finding: the most severe of them, else the
/// one that holds most, with `processes` and `all_processes_bytes`. Where these share a host's memory
/// its limit is reached by the sum of their rates. `host_rooms` may be null. After what asks each
/// device for its leaks.
void fold_processes(const Tables& tables, const std::vector<HostRoom>* host_rooms,
                    std::vector<Finding>* findings);

}  // namespace gpumemprof

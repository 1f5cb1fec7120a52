// What an allocator served where it refused a request: whether that one was unusual.
#pragma once

#include <vector>

#include "analysis/analysis.h"
#include "analysis/leaks/leak_history.h"

namespace gpumemprof {

/// Sets what all refusals have of the requests that were served at their stacks. Time O(stacks +
/// refusals), and nothing where nothing was refused.
void add_served_requests(const std::vector<ProcessHistory>& histories,
                         std::vector<DeviceAnalysis>* devices);

}  // namespace gpumemprof

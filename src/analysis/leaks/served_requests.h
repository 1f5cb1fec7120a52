// What an allocator served where it refused a request: whether that one was unusual.
#pragma once

#include <vector>

#include "analysis/analysis.h"
#include "analysis/leaks/leak_history.h"

namespace gpumemprof {

/// Sets Refusal::largest_served_bytes of all refusals, where their stack was served a few requests.
/// Time O(stacks + refusals), and nothing where nothing was refused.
void add_served_requests(const std::vector<ProcessHistory>& histories,
                         std::vector<DeviceAnalysis>* devices);

}  // namespace gpumemprof

// What an allocator served at the line of a request that it refused: whether that one was unusual.
#pragma once

#include <vector>

#include "analysis/analysis.h"
#include "analysis/leaks/leak_history.h"

namespace gpumemprof {

/// Sets Refusal::largest_served_bytes of all refusals, by the sites of their device. Lines are those
/// of leak_line(). Time O(stacks + refusals), and nothing where nothing was refused.
void add_served_requests(const std::vector<ProcessHistory>& histories, const Tables& tables,
                         std::vector<DeviceAnalysis>* devices);

}  // namespace gpumemprof

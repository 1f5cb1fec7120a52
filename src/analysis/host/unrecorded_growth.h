// Host memory that grows without any recorded allocator: graphs that are traced again and again,
// Python's own objects, arrays of libraries that nobody records.
#pragma once

#include <optional>

#include "analysis/analysis.h"
#include "analysis/finding.h"
#include "analysis/host/host_memories.h"

namespace gpumemprof {

/// By the anonymous memory of all of the run's processes at each sample, less what the recorded
/// allocators had of the host at that time. Nothing where blocks of malloc are recorded (--host):
/// they tell more.
std::optional<Finding> unrecorded_growth(const HostRun& run, const Analysis& analysis,
                                         const Tables& tables);

}  // namespace gpumemprof

// What is wrong with the host's memory of a run, as findings: who killed it, who copied, what was
// left behind, and what only looks like a leak.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/finding.h"
#include "analysis/host/host_memories.h"
#include "analysis/pass/program_end.h"

namespace gpumemprof {

/// Finding::device of those: they are about no device of Tables.
inline constexpr uint16_t kOfTheHost = UINT16_MAX;

std::vector<Finding> host_findings(const HostMemories& memories, const ProgramEnds& ends);

}  // namespace gpumemprof

// What is wrong with the host's memory of a run, as findings: who killed it, who copied, what was
// left behind, and what only looks like a leak.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/finding.h"
#include "analysis/host/host_memories.h"
#include "analysis/pass/program_end.h"

namespace gpumemprof {

/// Finding::device of those: they are about no device of Tables.
inline constexpr uint16_t kOfTheHost = UINT16_MAX;

/// How far the tensors of a process in host memory rise and fall from `since_ns` on, in bytes: they
/// use again what malloc keeps. UINT64_MAX where it is not known.
using SwingSince = std::function<uint64_t(int64_t pid, uint64_t since_ns)>;
/// Both must outlive it.
SwingSince swing_of_tensors(const Analysis& analysis, const Tables& tables);

/// `swing` may be empty.
std::vector<Finding> host_findings(const HostMemories& memories, const ProgramEnds& ends,
                                   const SwingSince& swing = {});

}  // namespace gpumemprof

// A cache of pinned host memory that takes ever new sizes and gives nothing back.
#pragma once

#include <optional>

#include "analysis/finding.h"
#include "analysis/replay/pinned_use.h"

namespace gpumemprof {

/// "pinned_cache_growth": a quarter of what was taken, and 32 MiB, were never in use at one time,
/// nothing went back, and a 20th was taken in the second half of the trace.
std::optional<Finding> find_pinned_cache_growth(const PinnedUse& use);

}  // namespace gpumemprof

// Pinned host buffers that are larger than asked for: PyTorch rounds each to a power of two.
#pragma once

#include <optional>

#include "analysis/finding.h"
#include "analysis/replay/pinned_use.h"

namespace gpumemprof {

/// "pinned_rounding", where it is 32 MiB and a 20th of what was in use.
std::optional<Finding> find_pinned_rounding(const PinnedUse& use);

}  // namespace gpumemprof

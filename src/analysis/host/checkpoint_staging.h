// Copies of tensors in host memory that saving a checkpoint makes.
#pragma once

#include <string_view>
#include <vector>

#include "analysis/analysis.h"

namespace gpumemprof {

/// Whether "FILE:LINE FUNCTION" is a step of saving: torch.save, or a save of
/// torch.distributed.checkpoint and its staging.
bool is_saving(std::string_view frame);

/// One for each device of the host at whose peak such copies were live and more than a quarter of
/// it. The program's own copies before it calls these have its own lines.
std::vector<Finding> checkpoint_staging(const Analysis& analysis, const Tables& tables);

}  // namespace gpumemprof

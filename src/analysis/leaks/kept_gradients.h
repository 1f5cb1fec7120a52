// Gradients that stay allocated between the steps: no growth, but memory that forward passes could
// have.
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/leaks/leak_history.h"
#include "analysis/leaks/leaks.h"
#include "trace/tables.h"

namespace gpumemprof {

struct KeptGradients {
  uint32_t process = 0;
  uint16_t device = 0;
  uint32_t node = 0;  ///< the line that ran the backward pass
  uint64_t bytes = 0, blocks = 0;
  uint64_t steps = 0;            ///< over which they stayed
  std::vector<uint32_t> stacks;  ///< that made them
};

/// Blocks that a backward pass made in the first steps, that are as large as something else of that
/// age (its parameter), and that are live at the end, while backward passes of the
/// same line went on. `leaks`: lines that are left out, as theirs stay for another reason.
std::vector<KeptGradients> find_kept_gradients(const std::vector<ProcessHistory>& histories,
                                               const std::vector<Leak>& leaks,
                                               const Tables& tables);

}  // namespace gpumemprof

// Which line of a stack to name, and what those lines hold: the user can change his own code.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/live_state.h"

namespace gpumemprof {

/// The node of the frame to name in one line: the innermost in the user's own code, else of a
/// Python library, else PyTorch's operator (at::_ops), else the innermost that is not the taking of
/// the stack itself. 0 where no stack is known.
uint32_t headline_node(const Tables& tables, uint32_t stack);

/// Holders whose headline frame is the same line, added up.
struct HolderLine {
  uint32_t node = 0;  ///< of the headline frame; 0: no stack known
  uint64_t bytes = 0;
  uint64_t count = 0;
  std::vector<Holder> stacks;  ///< in the order they came
};

/// By headline frame, largest first.
std::vector<HolderLine> group_by_line(const std::vector<Holder>& holders, const Tables& tables);
/// By the innermost frame, which may well be a library's: what a line of the user's led to.
std::vector<HolderLine> group_by_innermost(const std::vector<Holder>& holders,
                                           const Tables& tables);

}  // namespace gpumemprof

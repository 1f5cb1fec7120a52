// Which line of a stack is the user's own: that is where he can change something.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/live_state.h"
#include "trace/own_code.h"

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

/// "train.py:41 forward", printable; says so where no stack is known.
std::string headline_text(const Tables& tables, uint32_t node, std::string_view folder);

/// The same without a folder to shorten by, for one frame of a stack: whole path.
std::string frame_text(const Tables& tables, uint32_t node);

}  // namespace gpumemprof

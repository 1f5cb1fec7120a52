// Lines of code as reports name them.
#pragma once

#include <string>
#include <string_view>

#include "trace/holder_lines.h"
#include "trace/own_code.h"

namespace gpumemprof {

/// What stands for a frame where no stack was recorded.
inline constexpr std::string_view kNoStack = "(no stack recorded)";

/// "train.py:41 forward", printable; says so where no stack is known.
std::string headline_text(const Tables& tables, uint32_t node, std::string_view folder);

/// The same without a folder to shorten by, for one frame of a stack: whole path.
std::string frame_text(const Tables& tables, uint32_t node);

/// "step (train.py:41)" as viewers of flame graphs show it, printable; the file without its folder.
std::string viewer_frame(const Tables& tables, const Frame& frame);

}  // namespace gpumemprof

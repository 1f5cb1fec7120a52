// Lines of code as reports name them.
#pragma once

#include <string>
#include <string_view>

#include "trace/holder_lines.h"
#include "trace/own_code.h"

namespace gpumemprof {

/// "train.py:41 forward", printable; says so where no stack is known.
std::string headline_text(const Tables& tables, uint32_t node, std::string_view folder);

/// The same without a folder to shorten by, for one frame of a stack: whole path.
std::string frame_text(const Tables& tables, uint32_t node);

}  // namespace gpumemprof

// Names of call stacks that stand side by side.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/tables.h"

namespace gpumemprof {

/// The line that reports name for each stack. Those of the same line are told apart: by the nearest
/// caller that differs, "a.py:7 f ← a.py:12 g", else by what the line called, "a.py:7 f → b.py:3 h",
/// and what is the same to every frame that is named by a number, "a.py:7 f (2)".
std::vector<std::string> stack_labels(const Tables& tables, std::span<const uint32_t> stacks);

}  // namespace gpumemprof

// The source text of the recorded program, for questions that the events leave open.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "trace/tables.h"

namespace gpumemprof {

/// The text of a line of a process' program; empty where it is not known.
using LineText = std::function<std::string(const Process&, const std::string& file, uint32_t line)>;

}  // namespace gpumemprof

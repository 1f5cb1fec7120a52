// Without a GIL (CPython 3.14) each thread but the first runs a copy of a function's instructions.
#pragma once

#include <stdint.h>

#include "probe/python_frames.h"

namespace gpumemprof::probe {

/// Where the instructions begin that a frame runs, for its place (place_of()). The list of copies
/// may be replaced by a longer one and freed by another thread: what is read of it counts only if
/// the instruction lies in the copy that it names. 0: not known.
uint64_t begin_of_code(const char* frame, const char* code, uint64_t place);

}  // namespace gpumemprof::probe

// What Python's arenas take: the interpreter's allocator of them, with a count of its bytes.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// Before the program begins, while there is one thread and no arena. Where Python is not loaded yet
/// it does nothing.
void count_python_arenas();

/// Bytes that all arenas of this process have now, and from 3.11 on the stacks of Python's frames,
/// which the same allocator makes; -1 with one clause of why where that is unknown.
int64_t python_arenas(const char** why);

}  // namespace gpumemprof::probe

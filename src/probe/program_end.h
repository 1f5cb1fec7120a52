// The interpreter's end: what is freed from then on the program had kept to its end, and let go of
// for no reason of its own.
#pragma once

#include <stdint.h>

#include "probe/python_frames.h"

namespace gpumemprof::probe {

extern uint32_t g_awaits_program_end;

/// Has the end marked in the recording, once: a program of models runs here.
void await_program_end();
void mark_program_end();

/// Before a free is recorded: the interpreter is asked whether it ends, which reads one word.
inline void look_for_program_end() {
  if (!__atomic_load_n(&g_awaits_program_end, __ATOMIC_RELAXED)) return;
  if (g_python.ready && g_python.is_finalizing && g_python.is_finalizing()) mark_program_end();
}

}  // namespace gpumemprof::probe

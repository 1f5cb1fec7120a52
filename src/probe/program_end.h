// The interpreter's end: what is freed from then on was kept to the end by the program.
#pragma once

#include <stdint.h>

#include "probe/python_frames.h"

namespace gpumemprof::probe {

extern uint32_t g_awaits_program_end;

/// Enables marking the end in the recording, once: a program with models runs here.
void await_program_end();
void mark_program_end();

/// Before a free is recorded: checks whether the interpreter is exiting, by reading one word.
inline void look_for_program_end() {
  if (!__atomic_load_n(&g_awaits_program_end, __ATOMIC_RELAXED)) return;
  if (g_python.ready && g_python.is_finalizing && g_python.is_finalizing()) mark_program_end();
}

}  // namespace gpumemprof::probe

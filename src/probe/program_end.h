// The program's end: what exit handlers and the interpreter free from then on was kept to the end.
#pragma once

#include <stdint.h>

#include "probe/python_frames.h"

namespace gpumemprof::probe {

enum ProgramEnd : uint32_t { kEndIsNotAwaited, kEndIsAwaited, kExitHandlersRun };
extern uint32_t g_program_end;

/// Enables marking the end in the recording, once: a program with models runs here.
void await_program_end();
/// The program's exit handlers run from now on.
void program_has_ended();
void mark_program_end();

/// Before a free is recorded: checks whether the program has ended, by reading one word.
inline void look_for_program_end() {
  const uint32_t end = __atomic_load_n(&g_program_end, __ATOMIC_RELAXED);
  if (end == kEndIsNotAwaited) return;
  if (end == kExitHandlersRun ||
      (g_python.ready && g_python.is_finalizing && g_python.is_finalizing())) {
    mark_program_end();
  }
}

}  // namespace gpumemprof::probe

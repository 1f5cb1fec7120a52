// The context (contextvars) of the calling thread.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

inline constexpr uint64_t kNoContext = 0;    // a thread without Python, or not known
inline constexpr uint64_t kBaseContext = 1;  // none was entered: the thread's own

/// Looks for the interpreter; once it exists, only once. False: its contexts are unknown (another
/// version than CPython 3.9 to 3.14, a build without the GIL).
bool know_contexts();

/// kNoContext, kBaseContext, or the address of the PyContext object that was entered last. Reads
/// the calling thread's own state, so the GIL is not needed. kNoContext before know_contexts().
uint64_t current_context();

}  // namespace gpumemprof::probe

// Which context (contextvars) the calling thread is in.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

inline constexpr uint64_t kNoContext = 0;    // a thread without Python, or not known
inline constexpr uint64_t kBaseContext = 1;  // none was entered: the thread's own

/// Looks for the interpreter, once it is there only once. False: its contexts are not known
/// (another version than CPython 3.11 to 3.14, a build without the GIL).
bool know_contexts();

/// kNoContext, kBaseContext, or the address of the PyContext object that was entered last. The
/// calling thread's own state is read, so the GIL is not needed. kNoContext before know_contexts().
uint64_t current_context();

}  // namespace gpumemprof::probe

// The probe's marks in this process, found at run time.
#pragma once

#include "gpumemprof/gpumemprof.h"

namespace gpumemprof::python {

/// The functions of the C API's section "Marks", and one that calls back. Where no probe, or an
/// older one, is loaded they do nothing: so nobody has to ask.
struct Calls {
  uint64_t (*phase_begin)(const char*);
  void (*phase_end)(uint64_t);
  void (*step_end)(void);
  void (*mark_storage)(const void*, int, const char*);
  void (*unmark_storage)(const void*);
  void (*roles_hold)(void);
  void (*program_ends)(void);
  void (*mark_module)(const void*, const char*);
  void (*when_module_is_new)(int (*)(void*), void*);
  void (*call_after)(uint64_t, int (*)(int (*)(void*), void*), int (*)(void*), void*);
  int64_t (*blocks_until_call)(void);
  int64_t (*python_arenas)(const char**);
};

extern Calls g_calls;

/// Looks them up: in what is preloaded, else in the library at `path` (may be null) if it is loaded
/// already. Whether they are there.
bool find_calls(const char* path);

}  // namespace gpumemprof::python

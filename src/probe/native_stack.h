// Native frames, on request, through libunwind.
//
// libunwind is opened with RTLD_LOCAL and never linked: its library exports _Unwind_* as well, and
// a preloaded library that needs it takes them over for the whole program, which makes C++
// exceptions 28 times as slow (91 us instead of 3.3 us a throw through ten frames).
#pragma once

#include <stdint.h>

#include "probe/dynamic.h"

namespace gpumemprof::probe {

/// The library of `run --host`, whose frames no stack shows either.
extern ObjectRange g_host_library;

/// Opens libunwind if native stacks were requested, and notes in the file whether that worked.
void prepare_native();

/// Fills `out` with return addresses, innermost first; returns their number. 0 if native stacks are
/// off. About 10 ns per frame once libunwind's per-thread cache has them.
int native_backtrace(void** out, int max);

/// True once the program has closed what libunwind needs.
bool native_has_ended();

struct Module {
  uintptr_t begin, end;  // its loaded segments
  uintptr_t bias;        // add to an address of the file
  char path[1024];
};
/// The module that contains `pc`. Takes the loader's lock.
bool find_module(uintptr_t pc, Module* out);

}  // namespace gpumemprof::probe

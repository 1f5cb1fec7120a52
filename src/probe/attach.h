// Hooks in a process that was not started with them: gpumemprof_attach().
//
//   already preloaded ──────────────────────────────────────────────▶ nothing to do
//   else  1. the library becomes visible to all: what is loaded from now on finds our hooks first
//         2. the tables of what is loaded already are changed (got.h)
//         3. every framework that is loaded is asked for a block, which must arrive; it is not
//            counted
#pragma once

namespace gpumemprof::probe {

/// True if the program was started with this library before libc.
bool is_preloaded();

/// True if the program's allocations reach this library: preloaded, or attached.
bool hooks_are_in_place();

/// The API function of that name.
bool attach(const char* folder, int flags);

/// "" if the last attach succeeded, or none was tried.
const char* attach_error();

}  // namespace gpumemprof::probe

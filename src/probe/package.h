// Has the program's Python load gpumemprof's package where the program's environment has none: the
// command may be in another one. It names modules, parameters and holders, as it does where it is
// installed; the program's sys.path and environment stay as they are.
#pragma once

#include <stdint.h>

namespace gpumemprof::probe {

/// Folder with `_gpumemprof_recorded`, from GPUMEMPROF_PACKAGE; empty: none.
extern char g_package[1024];
/// Not 0: the package is still to be loaded.
extern uint32_t g_is_package_wanted;

/// The interpreter is asked to load it between two of its instructions, in its main thread. Not for
/// every event: once, and again where a framework's import had not ended yet.
void load_package();

}  // namespace gpumemprof::probe

// The memory of graphs. The driver only reports a device's total for all of them.
#pragma once

#include "driver_proxy/watch.h"

namespace gpumemprof::driver_proxy {

/// Called after anything that may make graphs hold memory; before the first call nothing is
/// queried.
void expect_graph_memory();
/// Reads what graphs have reserved on `device` now; does nothing if that is below 0.
void level_graphs(Watch& watch, int device);

}  // namespace gpumemprof::driver_proxy

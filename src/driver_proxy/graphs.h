// The memory of graphs, of which the driver says how much a device has for all of them.
#pragma once

#include "driver_proxy/watch.h"

namespace gpumemprof::driver_proxy {

/// Something was done after which graphs may hold memory. Before that nobody asks for it.
void expect_graph_memory();
/// Asks what graphs have reserved by now on `device`; nothing where that is below 0.
void level_graphs(Watch& watch, int device);

}  // namespace gpumemprof::driver_proxy

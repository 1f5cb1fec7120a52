// A picture of what the machine's devices did during a run.
#pragma once

#include <string>

#include "analysis/driver/device_use.h"

namespace gpumemprof {

/// Used by everybody and by this run, over the run. Empty of fewer than two samples.
std::string machine_figure(const MemoryUse& use);

}  // namespace gpumemprof

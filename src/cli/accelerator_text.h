// Accelerators as `info` prints them.
#pragma once

#include <string>

#include "devices/accelerator.h"

namespace gpumemprof {

/// Some lines a device; `detailed` adds its condition, its slices and what the driver is.
std::string accelerator_text(const Accelerator& device, bool detailed);

}  // namespace gpumemprof

// Accelerators as JSON, the same in `info`, in `diagnose` and in Python.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "devices/accelerator.h"

namespace gpumemprof {

/// Sizes in bytes, each under its name; a null has its reason in the "unknown" beside it.
/// docs/devices.md lists the keys, docs/schemas/info.schema.json holds them.
nlohmann::ordered_json accelerator_json(const Accelerator& device);

}  // namespace gpumemprof

// Use of the machine's memory, as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/driver/device_use.h"

namespace gpumemprof {

/// "device_samples" of docs/schemas/analysis.schema.json.
nlohmann::ordered_json machine_json(const DeviceUse& use);

}  // namespace gpumemprof

// One sum of a device in JSON: the same words in reports of recordings and in live views.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/driver/driver_memories.h"

namespace gpumemprof {

/// "driver_moment" of docs/schemas: what is unknown is null, with the reason under "unknown".
nlohmann::ordered_json driver_moment_json(const DriverMoment& moment);

}  // namespace gpumemprof

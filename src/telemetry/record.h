// One record of telemetry, of a JSON that is built already.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "telemetry/event.h"
#include "telemetry/reader.h"

namespace gpumemprof {

/// The event of an object. With kVersion2 it must have that version's keys and no other.
/// Errors: as parse_telemetry_record().
Result<TelemetryEvent> telemetry_of(nlohmann::json record, Shapes shapes);

/// The same of a row of a table; an empty cell is null.
Result<TelemetryEvent> telemetry_of(const std::vector<std::string>& names,
                                    const std::vector<std::string>& cells, Shapes shapes);

}  // namespace gpumemprof

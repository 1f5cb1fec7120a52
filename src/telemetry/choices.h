// What may be chosen where telemetry is read.
#pragma once

#include "telemetry/reader.h"
#include "telemetry/record.h"

namespace gpumemprof {

struct TelemetryChoices {
  Shapes shapes = Shapes::kAny;
  std::optional<std::string> events_key;  ///< of the list in a JSON object
  bool may_be_empty = false;              ///< a file without a byte has no events
  bool waits = true;  ///< for a tracker to end; a program that reads its own file would wait for itself
};

Result<Telemetry> read_telemetry(const std::string& path, const TelemetryChoices& choices);
Result<Telemetry> parse_telemetry(std::string_view text, const TelemetryChoices& choices);

}  // namespace gpumemprof

// Reads every file that trackers, monitors and diagnoses write: JSON arrays of events, objects with
// such an array, JSON lines, CSV, and the three parallel arrays of a timeline. What it is, is told
// by its content, not by its name.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "telemetry/event.h"

namespace gpumemprof {

enum class TelemetryKind { kJsonArray, kJsonLines, kCsv, kEventsObject, kTimeline };
const char* telemetry_kind_name(TelemetryKind kind);

struct Telemetry {
  TelemetryKind kind = TelemetryKind::kJsonArray;
  uint64_t file_bytes = 0;
  std::vector<TelemetryEvent> events;  ///< as they stand in the file
  bool is_growing = false;             ///< somebody still writes it
  /// What is not in `events`, one sentence each: a last record that was cut short, with its size.
  uint64_t lost_bytes = 0;
  std::vector<std::string> losses;
  std::vector<std::string> notes;  ///< what to know to trust the figures
};

inline constexpr uint64_t kMaxTelemetryBytes = uint64_t{1} << 30;

/// Errors: kNotFound, kSystem, kBadInput with the offset, kUnsupported. A file that was cut short
/// in its last record is no error. Where a tracker is about to end, waits for it, a second at
/// most: whoever stops a tracker and analyzes at once gets the whole file.
Result<Telemetry> read_telemetry(const std::string& path);

/// The same of a text.
Result<Telemetry> parse_telemetry(std::string_view text);

}  // namespace gpumemprof

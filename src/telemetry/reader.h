// Reads every file that trackers, monitors and diagnoses write: JSON arrays of events, objects with
// such an array, JSON lines, CSV, and the three parallel arrays of a timeline. What it is, is told
// by its content, not by its name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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
  /// What is not in `events`, one sentence each: a last record that was cut short, with its size.
  uint64_t lost_bytes = 0;
  std::vector<std::string> losses;
  std::vector<std::string> notes;  ///< what to know to trust the figures
};

inline constexpr uint64_t kMaxTelemetryBytes = uint64_t{1} << 30;

enum class Shapes : uint8_t { kAny, kVersion2 };  ///< of records

struct TelemetryChoices {
  Shapes shapes = Shapes::kAny;
  std::optional<std::string> events_key = {};  ///< of the list in a JSON object
  bool may_be_empty = false;                   ///< a file without a byte has no events
  bool waits = true;  ///< for a tracker to end; a program that reads its own would wait for itself
};

/// Errors: kNotFound, kSystem, kBadInput with the offset, kUnsupported. A file that was cut short
/// in its last record is no error. Where a tracker is about to end, waits for it, a second at
/// most: whoever stops a tracker and analyzes at once gets the whole file.
Result<Telemetry> read_telemetry(const std::string& path, const TelemetryChoices& choices = {});

/// Begins what is said of a file that is of no kind that is known.
inline constexpr const char* kNoTelemetry = "is not a recording, a snapshot or a tracker's file";

/// The same of a text.
Result<Telemetry> parse_telemetry(std::string_view text, const TelemetryChoices& choices = {});

}  // namespace gpumemprof

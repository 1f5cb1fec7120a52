// One sample or incident of a tracker: TelemetryEvent, version 2. The same record in JSON, JSON
// lines and CSV; docs/schemas/telemetry-event-v2.schema.json says what the fields are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

inline constexpr int kTelemetryVersion = 2;

/// Sizes are in bytes. A field that a record does not have, or has as null, is empty. Version 2
/// wants allocated, reserved and used as numbers: where one is empty, 0 is written, and the object
/// "unknown" in metadata must name it with the reason; a reader takes such a figure for empty.
struct TelemetryEvent {
  int64_t timestamp_ns = 0;  ///< since 1970
  std::string event_type = "sample";
  std::string collector;
  int64_t sampling_interval_ms = 0;
  int64_t pid = -1;  ///< -1: of no process
  std::string host = "unknown";
  std::optional<std::string> job_id;
  int64_t rank = 0, local_rank = 0, world_size = 1;
  int64_t device_id = -1;  ///< -1: the CPU's memory
  std::optional<uint64_t> allocated_bytes, reserved_bytes, active_bytes, inactive_bytes;
  int64_t change_bytes = 0;  ///< of allocated_bytes since the sample before
  std::optional<uint64_t> used_bytes, free_bytes, total_bytes;  ///< of the device
  std::optional<std::string> context;
  std::string metadata = "{}";  ///< a JSON object
};

/// The names of the 22 fields, in the order of the file.
const std::vector<std::string>& telemetry_fields();

/// One line of JSON without the line end.
std::string telemetry_json(const TelemetryEvent& event);

/// One line of CSV (RFC 4180) without the line end; `metadata` is JSON in it, too.
std::string telemetry_csv(const TelemetryEvent& event);
std::string telemetry_csv_header();

/// Reads one JSON object: version 2, the later versions whose numbers may be null, or one of the
/// older shapes without a version (`timestamp` in seconds, `memory_allocated`, `allocated_memory`,
/// `memory_mb` …).
/// Errors: kBadInput with one sentence, no offset; kUnsupported for a version that is not known.
Result<TelemetryEvent> parse_telemetry_record(std::string_view json);

}  // namespace gpumemprof

// From a text to events: which of the shapes it is, and one parser a shape.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "telemetry/csv.h"
#include "telemetry/reader.h"
#include "telemetry/record_scanner.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxObjectBytes = 256u << 20;  // an object that has to be built whole
constexpr const char* kNoTelemetry = "is not a recording, a snapshot or a tracker's file";

std::unexpected<Error> at(size_t offset, const Error& error) {
  return std::unexpected(Error{error.code, error.message, offset});
}

/// Events one after the other. Records that are cut short at the end are stated.
Result<Telemetry> parse_records(std::string_view text, size_t from, bool in_array) {
  Telemetry out;
  out.kind = in_array ? TelemetryKind::kJsonArray : TelemetryKind::kJsonLines;
  RecordScanner scanner(text, from, in_array);
  for (;;) {
    auto record = scanner.next();
    if (!record) return std::unexpected(record.error());
    if (!*record) break;
    auto event = parse_telemetry_record((*record)->json);
    if (!event) return at((*record)->offset, event.error());
    out.events.push_back(std::move(*event));
  }
  if (scanner.truncated_bytes() > 0) {
    out.lost_bytes = scanner.truncated_bytes();
    out.losses.push_back("the last record is cut short (" + std::to_string(out.lost_bytes) +
                         " bytes)");
  } else if (scanner.is_unclosed()) {
    out.losses.push_back("the array has no end; its last records may be missing");
  } else if (in_array) {
    const size_t rest = text.find_first_not_of(" \t\r\n", scanner.offset() + 1);
    if (rest != text.npos) return fail_at(rest, "more text behind the array of events");
  }
  return out;
}

Result<Telemetry> parse_csv(std::string_view text) {
  CsvReader reader(text);
  auto header = reader.next();
  if (!header) return std::unexpected(header.error());
  if (!*header) return fail_at(0, kNoTelemetry);
  const std::vector<std::string> names = (*header)->cells;
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  if (!has("timestamp") && !has("timestamp_ns")) {
    return fail_at(0, std::string(kNoTelemetry) + " (a table without a column timestamp_ns)");
  }
  Telemetry out;
  out.kind = TelemetryKind::kCsv;
  for (;;) {
    auto row = reader.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) return out;
    const bool fits = (*row)->cells.size() == names.size();
    if (!(*row)->complete) {
      // Whole or not cannot be told: a number may have lost its last digits.
      out.lost_bytes = text.size() - (*row)->offset;
      out.losses.push_back("the last row has no line end (" + std::to_string(out.lost_bytes) +
                           " bytes)");
      return out;
    }
    if (!fits) {
      return fail_at((*row)->offset, "a row of " + std::to_string((*row)->cells.size()) +
                                         " cells under " + std::to_string(names.size()) +
                                         " columns");
    }
    for (size_t i = 0; i < names.size(); ++i) {
      if (names[i] == "metadata" && is_nested_too_deep((*row)->cells[i]))
        return fail_at((*row)->offset, "metadata is nested too deep");
    }
    auto event = parse_telemetry_row(names, (*row)->cells);
    if (!event) return at((*row)->offset, event.error());
    out.events.push_back(std::move(*event));
  }
}

bool is_number_array(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_array() &&
         std::ranges::all_of(*it, [](const Json& v) { return v.is_number() || v.is_null(); });
}

/// Parallel arrays: `timestamps` in seconds beside bytes (`allocated`, `reserved`) or, as another
/// tracker writes them, MiB (`memory_usage`).
Result<Telemetry> parse_timeline(const Json& object, bool in_mib) {
  Telemetry out;
  out.kind = TelemetryKind::kTimeline;
  const Json& times = object["timestamps"];
  const Json& allocated = object[in_mib ? "memory_usage" : "allocated"];
  const Json* reserved = is_number_array(object, "reserved") ? &object["reserved"] : nullptr;
  if (times.size() != allocated.size() || (reserved && reserved->size() != times.size()))
    return fail_at(0, "the arrays of the timeline have different lengths");
  const double unit = in_mib ? 1 << 20 : 1;
  const auto bytes = [&](const Json& value) -> std::optional<uint64_t> {
    if (value.is_null()) return std::nullopt;
    const double amount = value.get<double>() * unit;
    if (!(amount >= 0 && amount < 9e18)) return std::nullopt;
    return static_cast<uint64_t>(std::llround(amount));
  };
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i].is_null() || !(std::abs(times[i].get<double>()) < 9e9))
      return fail_at(0, "timestamp " + std::to_string(i) + " of the timeline is out of range");
    TelemetryEvent event;
    event.timestamp_ns = static_cast<int64_t>(std::llround(times[i].get<double>() * 1e9));
    event.collector = "gpumemprof.diagnose.timeline";
    event.allocated_bytes = bytes(allocated[i]);
    if (reserved) event.reserved_bytes = bytes((*reserved)[i]);
    out.events.push_back(std::move(event));
  }
  return out;
}

/// One object that is the whole file.
Result<Telemetry> parse_object(std::string_view json, size_t offset) {
  if (json.size() > kMaxObjectBytes)
    return fail_at(offset, "an object of more than 256 MiB; write JSON lines instead");
  const Json object = Json::parse(json, nullptr, false);
  if (object.is_discarded()) return fail_at(offset, "is no JSON");
  for (const char* name : {"events", "snapshots"}) {
    const auto list = object.find(name);
    if (list == object.end() || !list->is_array()) continue;
    Telemetry out;
    out.kind = TelemetryKind::kEventsObject;
    for (size_t i = 0; i < list->size(); ++i) {
      auto event = parse_telemetry_record((*list)[i].dump());
      if (!event) {
        return fail_at(offset,
                       std::string(name) + '[' + std::to_string(i) + "]: " + event.error().message);
      }
      out.events.push_back(std::move(*event));
    }
    return out;
  }
  if (is_number_array(object, "timestamps") && is_number_array(object, "allocated"))
    return parse_timeline(object, false);
  if (is_number_array(object, "timestamps") && is_number_array(object, "memory_usage"))
    return parse_timeline(object, true);
  return fail_at(offset, kNoTelemetry);
}

}  // namespace

const char* telemetry_kind_name(TelemetryKind kind) {
  switch (kind) {
    case TelemetryKind::kJsonArray:
      return "JSON";
    case TelemetryKind::kJsonLines:
      return "JSON lines";
    case TelemetryKind::kCsv:
      return "CSV";
    case TelemetryKind::kEventsObject:
      return "JSON object with events";
    case TelemetryKind::kTimeline:
      return "timeline";
  }
  return "unknown";
}

Result<Telemetry> parse_telemetry(std::string_view text) {
  size_t begin = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  begin = text.find_first_not_of(" \t\r\n", begin);
  if (begin == text.npos) return fail_at(0, "is empty");
  if (text.substr(begin).find('\0') != text.npos) return fail_at(begin, kNoTelemetry);
  if (text[begin] == '[') return parse_records(text, begin + 1, true);
  if (text[begin] != '{') return parse_csv(text.substr(begin));
  auto length = json_object_length(text, begin, text.size());
  if (!length) return std::unexpected(length.error());
  // One object is the whole file, or the first of many lines.
  const size_t rest = *length ? text.find_first_not_of(" \t\r\n", begin + **length) : text.npos;
  if (*length && rest == text.npos) {
    const std::string_view object = text.substr(begin, **length);
    auto event = parse_telemetry_record(object);
    if (!event) {
      auto whole = parse_object(object, begin);
      // An event that is wrong, rather than something that is no event at all.
      if (!whole && object.find("\"schema_version\"") != object.npos)
        return at(begin, event.error());
      return whole;
    }
    Telemetry out;
    out.kind = TelemetryKind::kJsonLines;
    out.events.push_back(std::move(*event));
    return out;
  }
  return parse_records(text, begin, false);
}

}  // namespace gpumemprof

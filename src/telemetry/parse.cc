// From a text to events: which of the shapes it is, and one parser a shape.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "telemetry/csv.h"
#include "telemetry/reader.h"
#include "telemetry/record.h"
#include "telemetry/record_scanner.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxObjectBytes = 256u << 20;  // an object that has to be built whole
constexpr const char* kNotInTimeline = "the timeline does not say";

std::unexpected<Error> at(size_t offset, const Error& error) {
  return std::unexpected(Error{error.code, error.message, offset});
}

Result<TelemetryEvent> parse_one(std::string_view json, Shapes shapes) {
  Json record = Json::parse(json, nullptr, false);
  if (record.is_discarded()) return fail(ErrorCode::kBadInput, "is not JSON");
  return telemetry_of(std::move(record), shapes);
}

/// Events one after the other. Records that are cut short at the end are stated.
Result<Telemetry> parse_records(std::string_view text, size_t from, bool in_array, Shapes shapes) {
  Telemetry out;
  out.kind = in_array ? TelemetryKind::kJsonArray : TelemetryKind::kJsonLines;
  RecordScanner scanner(text, from, in_array);
  for (;;) {
    auto record = scanner.next();
    if (!record) return std::unexpected(record.error());
    if (!*record) break;
    auto event = parse_one((*record)->json, shapes);
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
    if (rest != text.npos) return fail_at(rest, "text after the array of events");
  }
  return out;
}

Result<Telemetry> parse_csv(std::string_view text, Shapes shapes) {
  if (text.substr(0, text.find('\n')).contains('\0')) return fail_at(0, kNoTelemetry);
  CsvReader reader(text);
  auto header = reader.next();
  if (!header) return std::unexpected(header.error());
  if (!*header) return fail_at(0, kNoTelemetry);
  const std::vector<std::string> names = (*header)->cells;
  const auto has = [&](const char* name) { return std::ranges::find(names, name) != names.end(); };
  if (!has("timestamp") && !has("timestamp_ns")) {
    auto row = reader.next();
    const bool is_table = names.size() > 1 && row && *row && (*row)->cells.size() == names.size();
    return fail_at(0, std::string(kNoTelemetry) +
                          (is_table ? " (a table without a column timestamp_ns)" : ""));
  }
  if (!(*header)->complete) return fail_at(0, "ends within its header");
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
        return fail_at((*row)->offset, "metadata is nested too deeply");
    }
    auto event = telemetry_of(names, (*row)->cells, shapes);
    if (!event) return at((*row)->offset, event.error());
    out.events.push_back(std::move(*event));
  }
}

bool is_number_array(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_array() &&
         std::ranges::all_of(*it, [](const Json& v) { return v.is_number() || v.is_null(); });
}

/// Parallel arrays: `timestamps` in seconds beside bytes (`allocated`, `reserved`, `device_used`,
/// `device_free`, `device_total`) or, as another tracker writes them, MiB (`memory_usage`).
Result<Telemetry> parse_timeline(const Json& object, bool in_mib) {
  Telemetry out;
  out.kind = TelemetryKind::kTimeline;
  const Json& times = object["timestamps"];
  const Json& allocated = object[in_mib ? "memory_usage" : "allocated"];
  const std::pair<const char*, std::optional<uint64_t> TelemetryEvent::*> others[] = {
      {"reserved", &TelemetryEvent::reserved_bytes},
      {"device_used", &TelemetryEvent::used_bytes},
      {"device_free", &TelemetryEvent::free_bytes},
      {"device_total", &TelemetryEvent::total_bytes}};
  bool fits = times.size() == allocated.size();
  for (const auto& [name, field] : others)
    fits &= !is_number_array(object, name) || object[name].size() == times.size();
  if (!fits) return fail_at(0, "the arrays of the timeline have different lengths");
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
    for (const auto& [name, field] : others) {
      if (is_number_array(object, name)) event.*field = bytes(object[name][i]);
    }
    Json unknown = Json::object();
    if (!event.allocated_bytes) unknown["allocator_allocated_bytes"] = kNotInTimeline;
    if (!event.reserved_bytes) unknown["allocator_reserved_bytes"] = kNotInTimeline;
    if (!event.used_bytes) unknown["device_used_bytes"] = kNotInTimeline;
    unknown["allocator_change_bytes"] = kNotInTimeline;
    event.metadata = Json{{"unknown", unknown}}.dump();
    out.events.push_back(std::move(event));
  }
  return out;
}

Result<Telemetry> parse_list(const std::string& name, Json& list, size_t offset, Shapes shapes) {
  Telemetry out;
  out.kind = TelemetryKind::kEventsObject;
  for (size_t i = 0; i < list.size(); ++i) {
    auto event = telemetry_of(std::move(list[i]), shapes);
    if (!event) {
      return fail_at(offset, name + '[' + std::to_string(i) + "]: " + event.error().message);
    }
    out.events.push_back(std::move(*event));
  }
  return out;
}

/// One object that is the whole file.
Result<Telemetry> parse_object(std::string_view json, size_t offset,
                               const TelemetryChoices& choices) {
  if (json.size() > kMaxObjectBytes)
    return fail_at(offset, "an object larger than 256 MiB; write JSON lines instead");
  Json object = Json::parse(json, nullptr, false);
  if (object.is_discarded()) return fail_at(offset, "is not JSON");
  std::vector<std::string> keys = {"events", "snapshots"};
  if (choices.events_key) keys = {*choices.events_key};
  for (const std::string& key : keys) {
    const auto list = object.find(key);
    if (list == object.end() || !list->is_array()) continue;
    // Who writes arrays beside an empty list of events has the data in the arrays.
    if (list->empty() && object.contains("timestamps")) continue;
    return parse_list(key, *list, offset, choices.shapes);
  }
  if (choices.events_key)
    return fail_at(offset, "has no list under the key '" + *choices.events_key + "'");
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

Result<Telemetry> parse_telemetry(std::string_view text, const TelemetryChoices& choices) {
  size_t begin = text.starts_with("\xef\xbb\xbf") ? 3 : 0;
  begin = text.find_first_not_of(" \t\r\n", begin);
  if (begin == text.npos) {
    if (choices.may_be_empty) return Telemetry{};
    return fail_at(0, "is empty");
  }
  const Shapes shapes = choices.shapes;
  if (text[begin] == '[') return parse_records(text, begin + 1, true, shapes);
  if (text[begin] != '{') return parse_csv(text.substr(begin), shapes);
  auto length = json_object_length(text, begin, text.size());
  if (!length) return std::unexpected(length.error());
  if (!*length) return fail_at(begin, "ends within its first record");
  // One object is the whole file, or the first of many lines.
  if (text.find_first_not_of(" \t\r\n", begin + **length) == text.npos) {
    const std::string_view object = text.substr(begin, **length);
    if (choices.events_key) return parse_object(object, begin, choices);
    auto event = parse_one(object, shapes);
    if (!event) {
      auto whole = parse_object(object, begin, choices);
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
  return parse_records(text, begin, false, shapes);
}

}  // namespace gpumemprof

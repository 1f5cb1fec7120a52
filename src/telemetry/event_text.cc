// A telemetry event as a line of JSON or CSV. Written by hand rather than through a JSON object: a
// sampler writes it many times a second, and the order of the fields is part of the format.
#include <nlohmann/json.hpp>

#include "telemetry/event.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::json;

std::string json_text(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class Number>
std::string maybe(const std::optional<Number>& value) {
  return value ? std::to_string(*value) : "null";
}
/// Version 2 wants a number in these; metadata's "unknown" then says that it is none.
std::string required(const std::optional<uint64_t>& value) {
  return std::to_string(value.value_or(0));
}
std::string maybe_text(const std::optional<std::string>& value) {
  return value ? json_text(*value) : "null";
}

/// Calls each(name, value as JSON) in the order of the file.
template <class Each>
void for_each_field(const TelemetryEvent& e, Each each) {
  each("schema_version", std::to_string(kTelemetryVersion));
  each("timestamp_ns", std::to_string(e.timestamp_ns));
  each("event_type", json_text(e.event_type));
  each("collector", json_text(e.collector));
  each("sampling_interval_ms", std::to_string(e.sampling_interval_ms));
  each("pid", std::to_string(e.pid));
  each("host", json_text(e.host));
  each("job_id", maybe_text(e.job_id));
  each("rank", std::to_string(e.rank));
  each("local_rank", std::to_string(e.local_rank));
  each("world_size", std::to_string(e.world_size));
  each("device_id", std::to_string(e.device_id));
  each("allocator_allocated_bytes", required(e.allocated_bytes));
  each("allocator_reserved_bytes", required(e.reserved_bytes));
  each("allocator_active_bytes", maybe(e.active_bytes));
  each("allocator_inactive_bytes", maybe(e.inactive_bytes));
  each("allocator_change_bytes", std::to_string(e.change_bytes));
  each("device_used_bytes", required(e.used_bytes));
  each("device_free_bytes", maybe(e.free_bytes));
  each("device_total_bytes", maybe(e.total_bytes));
  each("context", maybe_text(e.context));
  each("metadata", e.metadata);
}

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string out = "\"";
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

}  // namespace

const std::vector<std::string>& telemetry_fields() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for_each_field({}, [&](const char* name, const std::string&) { list.emplace_back(name); });
    return list;
  }();
  return names;
}

std::string telemetry_json(const TelemetryEvent& event) {
  std::string out;
  for_each_field(event, [&](const char* name, const std::string& value) {
    out += out.empty() ? "{\"" : ", \"";
    out += name;
    out += "\": ";
    out += value;
  });
  return out + '}';
}

std::string telemetry_csv_header() {
  std::string out;
  for (const std::string& name : telemetry_fields()) out += out.empty() ? name : ',' + name;
  return out;
}

std::string telemetry_csv(const TelemetryEvent& event) {
  std::string out;
  bool first = true;
  for_each_field(event, [&](std::string_view name, const std::string& value) {
    if (!first) out += ',';
    first = false;
    if (value == "null") return;
    const bool is_text = value.starts_with('"');
    // Texts lose their JSON quotes: a table's cell is text by itself. Objects stay JSON.
    out += csv_cell(is_text ? Json::parse(value, nullptr, false).get<std::string>() : value);
    (void)name;
  });
  return out;
}

}  // namespace gpumemprof

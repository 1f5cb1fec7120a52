// Reads one record of telemetry, in any of the shapes that were ever written. Every value is
// hostile: a number may be a text, a fraction, or larger than 64 bits.
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "telemetry/event.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::json;

constexpr double kMiB = 1 << 20;
constexpr int64_t kNewestVersion = 4;  // 3 adds session_id, 4 makes every counter nullable
constexpr double kMostSeconds = 9e9;   // fits 64 bits of nanoseconds

/// A record whose values are asked for by name; the first thing that is wrong is kept.
class Record {
 public:
  explicit Record(Json json) : json_(std::move(json)) {}

  const Json* find(const char* name) const {
    const auto it = json_.find(name);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }
  bool has(const char* name) const { return json_.contains(name); }
  const Json& json() const { return json_; }

  std::optional<double> number(const char* name) {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    double out = 0;
    if (value->is_number()) {
      out = value->get<double>();
    } else if (value->is_string()) {
      const std::string& text = value->get_ref<const std::string&>();
      const auto end = text.data() + text.size();
      if (std::from_chars(text.data(), end, out).ptr != end) return wrong(name, "is no number");
    } else {
      return wrong(name, "is no number");
    }
    if (!std::isfinite(out)) return wrong(name, "is no number");
    return out;
  }

  std::optional<int64_t> integer(const char* name) {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    if (value->is_number_unsigned()) {
      const uint64_t whole = value->get<uint64_t>();
      if (whole > INT64_MAX) return wrong(name, "is too large");
      return static_cast<int64_t>(whole);
    }
    if (value->is_number_integer()) return value->get<int64_t>();
    if (value->is_string()) {
      const std::string& text = value->get_ref<const std::string&>();
      int64_t whole = 0;
      const auto end = text.data() + text.size();
      if (const auto done = std::from_chars(text.data(), end, whole);
          done.ec == std::errc{} && done.ptr == end) {
        return whole;
      }
    }
    const std::optional<double> real = number(name);
    if (!real) return std::nullopt;
    if (std::abs(*real) > 9e18 || *real != std::floor(*real)) return wrong(name, "is no integer");
    return static_cast<int64_t>(*real);
  }

  std::optional<uint64_t> bytes(const char* name) {
    const std::optional<int64_t> value = integer(name);
    if (!value) return std::nullopt;
    if (*value < 0) return wrong(name, "is negative");
    return static_cast<uint64_t>(*value);
  }

  std::optional<std::string> text(const char* name) {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_string()) return wrong(name, "is no text");
    return value->get<std::string>();
  }

  std::nullopt_t wrong(const char* name, const char* what) {
    if (error_.empty()) error_ = std::string("'") + name + "' " + what;
    return std::nullopt;
  }
  const std::string& error() const { return error_; }

 private:
  Json json_;
  std::string error_;
};

template <class T>
void take(T* out, std::optional<T> value) {
  if (value) *out = std::move(*value);
}

/// The first of several names that is there.
std::optional<uint64_t> bytes_of(Record& record, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (record.find(name)) return record.bytes(name);
  }
  return std::nullopt;
}

void read_identity(Record& record, TelemetryEvent* event) {
  take(&event->event_type, record.text("event_type"));
  take(&event->collector, record.text("collector"));
  take(&event->sampling_interval_ms, record.integer("sampling_interval_ms"));
  take(&event->pid, record.integer("pid"));
  take(&event->host, record.text("host"));
  event->job_id = record.text("job_id");
  take(&event->rank, record.integer("rank"));
  take(&event->local_rank, record.integer("local_rank"));
  take(&event->world_size, record.integer("world_size"));
  event->context = record.text("context");
}

/// Version 2 has no null for some figures: a number stands in, and "unknown" names it.
void forget_unknown(const Json& metadata, TelemetryEvent* event) {
  const auto unknown = metadata.find("unknown");
  if (unknown == metadata.end() || !unknown->is_object()) return;
  if (unknown->contains("allocator_allocated_bytes")) event->allocated_bytes = std::nullopt;
  if (unknown->contains("allocator_reserved_bytes")) event->reserved_bytes = std::nullopt;
  if (unknown->contains("device_used_bytes")) event->used_bytes = std::nullopt;
}

void read_metadata(Record& record, TelemetryEvent* event) {
  const Json* value = record.find("metadata");
  if (!value) return;
  Json object = *value;
  if (value->is_string()) {  // a cell of a table
    object = Json::parse(value->get_ref<const std::string&>(), nullptr, false);
    // Older writers put something into the cell that is no JSON; it is kept as it is.
    if (object.is_discarded()) object = Json{{"text", *value}};
  }
  if (!object.is_object()) {
    record.wrong("metadata", "is no object");
    return;
  }
  forget_unknown(object, event);
  event->metadata = object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void read_versioned(Record& record, int64_t version, TelemetryEvent* event) {
  static constexpr const char* kRequired[] = {"timestamp_ns",
                                              "event_type",
                                              "collector",
                                              "sampling_interval_ms",
                                              "pid",
                                              "host",
                                              "device_id",
                                              "allocator_allocated_bytes",
                                              "device_used_bytes",
                                              "allocator_reserved_bytes"};
  for (const char* name : kRequired) {
    if (!record.has(name)) record.wrong(name, "is missing");
  }
  if (version == kTelemetryVersion && !record.find("timestamp_ns"))
    record.wrong("timestamp_ns", "is missing");
  take(&event->timestamp_ns, record.integer("timestamp_ns"));
  take(&event->device_id, record.integer("device_id"));
  event->allocated_bytes = record.bytes("allocator_allocated_bytes");
  event->reserved_bytes = record.bytes("allocator_reserved_bytes");
  event->active_bytes = record.bytes("allocator_active_bytes");
  event->inactive_bytes = record.bytes("allocator_inactive_bytes");
  take(&event->change_bytes, record.integer("allocator_change_bytes"));
  event->used_bytes = record.bytes("device_used_bytes");
  event->free_bytes = record.bytes("device_free_bytes");
  event->total_bytes = record.bytes("device_total_bytes");
}

/// "cpu" is -1, "cuda:3" is 3.
int64_t device_of_text(const std::string& text) {
  const size_t colon = text.find(':');
  int64_t index = -1;
  if (colon != text.npos)
    std::from_chars(text.data() + colon + 1, text.data() + text.size(), index);
  else if (text == "cuda")
    index = 0;
  return index;
}

void read_time(Record& record, TelemetryEvent* event) {
  if (record.find("timestamp_ns")) {
    take(&event->timestamp_ns, record.integer("timestamp_ns"));
    return;
  }
  const char* name = record.find("timestamp") ? "timestamp" : "time";
  const std::optional<double> seconds = record.number(name);
  if (!seconds) {
    record.wrong("timestamp", "is missing");
    return;
  }
  if (std::abs(*seconds) > kMostSeconds) {
    record.wrong(name, "is out of range");
    return;
  }
  event->timestamp_ns = static_cast<int64_t>(std::llround(*seconds * 1e9));
}

/// Snapshots of profilers and what trackers wrote before there was a version.
void read_legacy(Record& record, TelemetryEvent* event) {
  read_time(record, event);
  if (!record.find("event_type")) take(&event->event_type, record.text("type"));
  if (!record.find("context")) event->context = record.text("operation");
  if (record.find("device_id")) {
    take(&event->device_id, record.integer("device_id"));
  } else if (const Json* device = record.find("device"); device && device->is_string()) {
    event->device_id = device_of_text(device->get<std::string>());
  }
  event->allocated_bytes = bytes_of(record, {"allocator_allocated_bytes", "memory_allocated",
                                             "allocated_memory", "allocated", "rss", "rss_bytes"});
  if (const auto mib = record.number("memory_mb"); mib && !event->allocated_bytes) {
    if (*mib < 0 || *mib > 1e12) {
      record.wrong("memory_mb", "is out of range");
      return;
    }
    event->allocated_bytes = static_cast<uint64_t>(std::llround(*mib * kMiB));
  }
  event->reserved_bytes = bytes_of(
      record, {"allocator_reserved_bytes", "memory_reserved", "reserved_memory", "reserved"});
  event->active_bytes = bytes_of(record, {"active_memory", "active"});
  event->inactive_bytes = bytes_of(record, {"inactive_memory", "inactive"});
  event->used_bytes = bytes_of(record, {"device_used_bytes", "device_used"});
  event->free_bytes = bytes_of(record, {"device_free_bytes", "device_free"});
  event->total_bytes = bytes_of(record, {"device_total_bytes", "device_total"});
  take(&event->change_bytes, record.integer("memory_change"));
  if (event->collector.empty()) event->collector = "legacy.unknown";
  if (!event->allocated_bytes && !event->reserved_bytes && !event->used_bytes)
    record.wrong("allocator_allocated_bytes", "is missing");
}

Result<TelemetryEvent> parse(Json json) {
  Record record(std::move(json));
  TelemetryEvent event;
  const std::optional<int64_t> version = record.integer("schema_version");
  if (version && (*version < 1 || *version > kNewestVersion)) {
    return fail(ErrorCode::kUnsupported,
                "telemetry of version " + std::to_string(*version) + " is not known here");
  }
  read_identity(record, &event);
  if (version && *version >= kTelemetryVersion)
    read_versioned(record, *version, &event);
  else
    read_legacy(record, &event);
  read_metadata(record, &event);
  if (!record.error().empty()) return fail(ErrorCode::kBadInput, record.error());
  return event;
}

}  // namespace

Result<TelemetryEvent> parse_telemetry_record(std::string_view json) {
  Json value = Json::parse(json, nullptr, false);
  if (value.is_discarded()) return fail(ErrorCode::kBadInput, "is no JSON");
  if (!value.is_object()) return fail(ErrorCode::kBadInput, "is no JSON object");
  return parse(std::move(value));
}

Result<TelemetryEvent> parse_telemetry_row(const std::vector<std::string>& names,
                                           const std::vector<std::string>& cells) {
  Json record = Json::object();
  Json extra = Json::object();
  for (size_t i = 0; i < std::min(names.size(), cells.size()); ++i) {
    if (cells[i].empty()) continue;
    if (names[i].starts_with("metadata_"))
      extra[names[i].substr(9)] = cells[i];
    else
      record[names[i]] = cells[i];
  }
  if (!extra.empty() && !record.contains("metadata")) record["metadata"] = extra;
  return parse(std::move(record));
}

}  // namespace gpumemprof

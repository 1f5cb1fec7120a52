// Reads one record of telemetry, in any of the shapes that were ever written. Every value is
// hostile: a number may be a text, a fraction, or larger than 64 bits.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "telemetry/record.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::json;

constexpr double kMiB = 1 << 20;
constexpr int64_t kNewestVersion = 4;  // 3 adds session_id, 4 makes every counter nullable
constexpr double kMostSeconds = 9e9;   // fits 64 bits of nanoseconds

/// A record whose values are asked for by name; the first thing that is wrong is kept. Null and an
/// empty text say nothing.
class Record {
 public:
  explicit Record(Json json) : json_(std::move(json)) {}

  const Json* find(const char* name) {
    asked_.emplace_back(name);
    const auto it = json_.find(name);
    return it == json_.end() || says_nothing(*it) ? nullptr : &*it;
  }
  bool has(const char* name) const { return json_.contains(name); }

  /// What nobody asked for, into `to`.
  void keep_others(Json* to) const {
    for (const auto& [name, value] : json_.items()) {
      if (says_nothing(value) || std::ranges::find(asked_, name) != asked_.end()) continue;
      (*to)[name.starts_with("metadata_") ? name.substr(9) : name] = value;
    }
  }

  std::optional<double> number(const char* name) {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    double out = 0;
    if (value->is_number()) {
      out = value->get<double>();
    } else if (value->is_string()) {
      const std::string& text = value->get_ref<const std::string&>();
      const auto end = text.data() + text.size();
      if (std::from_chars(text.data(), end, out).ptr != end) return wrong(name, "is not a number");
    } else {
      return wrong(name, "is not a number");
    }
    if (!std::isfinite(out)) return wrong(name, "is not a number");
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
    if (std::abs(*real) > 9e18 || *real != std::floor(*real))
      return wrong(name, "is not an integer");
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
    if (!value->is_string()) return wrong(name, "is not a string");
    return value->get<std::string>();
  }

  std::nullopt_t wrong(const char* name, const char* what) {
    if (error_.empty()) error_ = std::string("'") + name + "' " + what;
    return std::nullopt;
  }
  const std::string& error() const { return error_; }

 private:
  static bool says_nothing(const Json& value) {
    return value.is_null() || (value.is_string() && value.get_ref<const std::string&>().empty());
  }

  Json json_;
  std::vector<std::string_view> asked_;  // literals
  std::string error_;
};

template <class T>
void take(T* out, std::optional<T> value) {
  if (value) *out = std::move(*value);
}

struct Names {
  std::initializer_list<const char*> bytes, mebibytes = {};
};

/// The first of several names that is there.
std::optional<uint64_t> bytes_of(Record& record, const Names& names) {
  std::optional<uint64_t> found;
  for (const char* name : names.bytes) {
    if (record.find(name) && !found) found = record.bytes(name);
  }
  for (const char* name : names.mebibytes) {
    if (!record.find(name) || found) continue;
    const std::optional<double> mib = record.number(name);
    if (!mib) return std::nullopt;
    if (*mib < 0 || *mib > 1e12) return record.wrong(name, "is out of range");
    found = static_cast<uint64_t>(std::llround(*mib * kMiB));
  }
  return found;
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

/// The record's own, what has no field of its own, and which figures the record does not tell.
void read_metadata(Record& record, const Json& unknown, std::optional<int64_t> version,
                   TelemetryEvent* event) {
  Json object = Json::object();
  if (const Json* value = record.find("metadata")) {
    object = *value;
    if (value->is_string()) {  // a cell of a table
      object = Json::parse(value->get_ref<const std::string&>(), nullptr, false);
      // Older writers put something into the cell that is not JSON; it is kept as it is.
      if (object.is_discarded()) object = Json{{"text", *value}};
    }
  }
  if (!object.is_object()) {
    record.wrong("metadata", "is not an object");
    return;
  }
  record.keep_others(&object);
  if (!unknown.empty()) {
    Json& known = object["unknown"];
    if (!known.is_object()) known = Json::object();
    known.update(unknown);
  }
  if (version > kTelemetryVersion) object["source_schema_version"] = *version;
  forget_unknown(object, event);
  event->metadata = object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// What a version of the record wants as a number, and this one does not tell.
Json untold(const TelemetryEvent& event, const std::string& why) {
  Json unknown = Json::object();
  if (!event.allocated_bytes) unknown["allocator_allocated_bytes"] = why;
  if (!event.reserved_bytes) unknown["allocator_reserved_bytes"] = why;
  if (!event.used_bytes) unknown["device_used_bytes"] = why;
  return unknown;
}

Json read_versioned(Record& record, int64_t version, TelemetryEvent* event) {
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
  return untold(*event, "null in version " + std::to_string(version));
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
  const char* name = record.find("timestamp") ? "timestamp" : "time";
  if (record.find("timestamp_ns")) {
    take(&event->timestamp_ns, record.integer("timestamp_ns"));
    return;
  }
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
Json read_legacy(Record& record, TelemetryEvent* event) {
  static constexpr const char* kWhy = "the record does not say";
  read_time(record, event);
  if (const auto type = record.text("type"); !record.find("event_type"))
    take(&event->event_type, type);
  if (const auto operation = record.text("operation"); !record.find("context"))
    event->context = operation;
  const Json* device = record.find("device");
  if (record.find("device_id"))
    take(&event->device_id, record.integer("device_id"));
  else if (device && device->is_string())
    event->device_id = device_of_text(device->get<std::string>());
  event->allocated_bytes =
      bytes_of(record, {{"allocator_allocated_bytes", "memory_allocated", "allocated_memory",
                         "allocated", "allocated_bytes", "rss", "rss_bytes"},
                        {"memory_mb", "gpu_memory_mb", "allocated_mb"}});
  event->reserved_bytes = bytes_of(record, {{"allocator_reserved_bytes", "memory_reserved",
                                             "reserved_memory", "reserved", "reserved_bytes"},
                                            {"gpu_memory_reserved_mb", "reserved_mb"}});
  event->active_bytes =
      bytes_of(record, {{"allocator_active_bytes", "active_memory", "active", "active_bytes"}});
  event->inactive_bytes = bytes_of(
      record, {{"allocator_inactive_bytes", "inactive_memory", "inactive", "inactive_bytes"}});
  event->used_bytes = bytes_of(record, {{"device_used_bytes", "device_used", "used_bytes"}});
  event->free_bytes = bytes_of(record, {{"device_free_bytes", "device_free", "free_bytes"}});
  event->total_bytes =
      bytes_of(record, {{"device_total_bytes", "device_total", "total_bytes", "total_memory"}});
  auto change = record.integer("allocator_change_bytes");
  if (const auto older = record.integer("memory_change"); !change) change = older;
  take(&event->change_bytes, change);
  const std::string backend = record.text("backend").value_or("");
  if (event->collector.empty() &&
      (backend == "cuda" || backend == "rocm" || backend == "mps" || backend == "cpu"))
    event->collector = "gpumemprof." + backend + "_tracker";
  if (!event->allocated_bytes && !event->reserved_bytes && !event->used_bytes)
    record.wrong("allocator_allocated_bytes", "is missing");
  Json unknown = untold(*event, kWhy);
  if (!change) unknown["allocator_change_bytes"] = kWhy;
  if (!record.find("local_rank")) event->local_rank = event->rank;
  if (!record.find("world_size") && event->rank >= 0 && event->rank < INT64_MAX) {
    event->world_size = event->rank + 1;  // at least so large
    if (event->rank > 0) unknown["world_size"] = kWhy;
  }
  return unknown;
}

void check_ranges(Record& record, const TelemetryEvent& event) {
  if (event.timestamp_ns < 0) record.wrong("timestamp_ns", "is negative");
  if (event.sampling_interval_ms < 0) record.wrong("sampling_interval_ms", "is negative");
  if (event.pid < -1) record.wrong("pid", "is below -1");
  if (event.world_size < 1) record.wrong("world_size", "is below 1");
  for (const auto& [name, rank] :
       {std::pair{"rank", event.rank}, std::pair{"local_rank", event.local_rank}}) {
    if (rank < 0 || rank >= event.world_size) record.wrong(name, "is not within world_size");
  }
}

std::string not_version_2(const Json& record) {
  const std::vector<std::string>& fields = telemetry_fields();
  for (const std::string& name : fields) {
    const bool optional = name == "job_id" || name.ends_with("rank") || name == "world_size";
    if (!optional && !record.contains(name)) return "'" + name + "' is missing";
  }
  for (const auto& [name, value] : record.items()) {
    if (std::ranges::find(fields, name) == fields.end())
      return "'" + name + "' is not in version 2";
  }
  return {};
}

}  // namespace

Result<TelemetryEvent> telemetry_of(Json json, Shapes shapes) {
  if (!json.is_object()) return fail(ErrorCode::kBadInput, "is not a JSON object");
  if (shapes == Shapes::kVersion2) {
    if (const std::string why = not_version_2(json); !why.empty())
      return fail(ErrorCode::kBadInput, why);
  }
  Record record(std::move(json));
  TelemetryEvent event;
  const std::optional<int64_t> version = record.integer("schema_version");
  if (version && (*version < 1 || *version > kNewestVersion ||
                  (shapes == Shapes::kVersion2 && *version != kTelemetryVersion))) {
    return fail(ErrorCode::kUnsupported,
                "telemetry version " + std::to_string(*version) + " is not supported");
  }
  read_identity(record, &event);
  Json unknown = version && *version >= kTelemetryVersion ? read_versioned(record, *version, &event)
                                                          : read_legacy(record, &event);
  if (event.collector.empty()) event.collector = "legacy.unknown";
  read_metadata(record, unknown, version, &event);
  check_ranges(record, event);
  if (!record.error().empty()) return fail(ErrorCode::kBadInput, record.error());
  return event;
}

Result<TelemetryEvent> telemetry_of(const std::vector<std::string>& names,
                                    const std::vector<std::string>& cells, Shapes shapes) {
  Json record = Json::object();
  for (size_t i = 0; i < std::min(names.size(), cells.size()); ++i)
    record[names[i]] = cells[i].empty() ? Json() : Json(cells[i]);
  return telemetry_of(std::move(record), shapes);
}

Result<TelemetryEvent> parse_telemetry_record(std::string_view json) {
  Json value = Json::parse(json, nullptr, false);
  if (value.is_discarded()) return fail(ErrorCode::kBadInput, "is not JSON");
  return telemetry_of(std::move(value), Shapes::kAny);
}

}  // namespace gpumemprof

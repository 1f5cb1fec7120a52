#include "native/bindings.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <memory>
#include <vector>

#include "devices/host_memory.h"
#include "native/raise.h"
#include "telemetry/alarm.h"
#include "telemetry/reader.h"
#include "telemetry/writer.h"

namespace nb = nanobind;

namespace gpumemprof::python {
namespace {

constexpr size_t kFields = 21;  // all but schema_version, in the order of the file

/// A file's text may be any bytes.
nb::object text_object(const std::string& text) {
  return nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

std::string text_of(nb::handle text) {
  nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace"));
  if (!bytes.is_valid()) nb::raise_python_error();
  return {PyBytes_AsString(bytes.ptr()), static_cast<size_t>(PyBytes_Size(bytes.ptr()))};
}

nb::object maybe_object(const std::optional<std::string>& text) {
  return text ? text_object(*text) : nb::none();
}

nb::tuple fields_of(const TelemetryEvent& e) {
  return nb::make_tuple(e.timestamp_ns, text_object(e.event_type), text_object(e.collector),
                        e.sampling_interval_ms, e.pid, text_object(e.host), maybe_object(e.job_id),
                        e.rank, e.local_rank, e.world_size, e.device_id, e.allocated_bytes,
                        e.reserved_bytes, e.active_bytes, e.inactive_bytes, e.change_bytes,
                        e.used_bytes, e.free_bytes, e.total_bytes, maybe_object(e.context),
                        text_object(e.metadata));
}

TelemetryEvent event_of(nb::handle fields) {
  const auto tuple = nb::cast<nb::tuple>(fields);
  if (tuple.size() != kFields) throw nb::value_error("an event has 21 fields");
  size_t n = 0;
  const auto next = [&]() -> nb::object { return tuple[n++]; };
  const auto number = [&next](auto* out) { *out = nb::cast<std::decay_t<decltype(*out)>>(next()); };
  const auto text = [&next](std::string* out) { *out = text_of(next()); };
  const auto maybe_text = [&next](std::optional<std::string>* out) {
    const nb::object value = next();
    if (!value.is_none()) *out = text_of(value);
  };
  TelemetryEvent e;
  number(&e.timestamp_ns), text(&e.event_type), text(&e.collector), number(&e.sampling_interval_ms);
  number(&e.pid), text(&e.host), maybe_text(&e.job_id);
  number(&e.rank), number(&e.local_rank), number(&e.world_size), number(&e.device_id);
  number(&e.allocated_bytes), number(&e.reserved_bytes), number(&e.active_bytes);
  number(&e.inactive_bytes), number(&e.change_bytes), number(&e.used_bytes);
  number(&e.free_bytes), number(&e.total_bytes), maybe_text(&e.context), text(&e.metadata);
  return e;
}

nb::tuple read_file(const nb::bytes& path, bool version_2_only,
                    const std::optional<std::string>& events_key) {
  const std::string name(path.c_str(), path.size());
  const TelemetryChoices choices{.shapes = version_2_only ? Shapes::kVersion2 : Shapes::kAny,
                                 .events_key = events_key,
                                 .may_be_empty = true,
                                 .waits = false};
  const auto read = without_gil(name, [&] { return read_telemetry(name, choices); });
  nb::list events, losses;
  for (const TelemetryEvent& event : read.events) events.append(fields_of(event));
  for (const std::string& loss : read.losses) losses.append(text_object(loss));
  return nb::make_tuple(events, losses);
}

nb::tuple read_record(const std::string& json) {
  const auto event = parse_telemetry_record(json);
  if (!event) raise(event.error());
  return fields_of(*event);
}

TelemetryFormat format_of(const std::string& name) {
  return name == "json"    ? TelemetryFormat::kJson
         : name == "jsonl" ? TelemetryFormat::kJsonLines
                           : TelemetryFormat::kCsv;
}

std::unique_ptr<TelemetryWriter> open_writer(const nb::bytes& path, const std::string& format) {
  auto writer = TelemetryWriter::create({path.c_str(), path.size()}, format_of(format));
  if (!writer) raise(writer.error());
  return std::make_unique<TelemetryWriter>(std::move(*writer));
}

void append_events(TelemetryWriter& writer, const nb::list& events) {
  std::vector<TelemetryEvent> batch;
  batch.reserve(events.size());
  for (nb::handle event : events) batch.push_back(event_of(event));
  without_gil("", [&] { return writer.append(batch); });
}

int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }

nb::object host_memory(const nb::bytes& root) {
  const HostMemory host = read_host_memory({root.c_str(), root.size()});
  const UsableMemory usable = usable_memory(host);
  if (!usable.total || !usable.used || !usable.free) return nb::none();
  const bool is_group = std::string_view(usable.basis) == "cgroup";
  return nb::make_tuple(*usable.total.bytes, *usable.used.bytes, *usable.free.bytes,
                        is_group ? maybe_object(host.limited_by) : nb::none());
}

}  // namespace

void bind_telemetry(nb::module_& module) {
  module.def("read_telemetry", &read_file, nb::arg("path"), nb::arg("version_2_only"),
             nb::arg("events_key").none());
  module.def("telemetry_record", &read_record, nb::arg("json"));
  nb::class_<TelemetryWriter>(module, "TelemetryWriter")
      .def("append", &append_events)
      .def("close", [](TelemetryWriter& writer) {
        if (const Status done = writer.close(); !done) raise(done.error());
      });
  module.def("telemetry_writer", &open_writer, nb::arg("path"), nb::arg("format"));
  module.attr("ALARM_PAUSE_S") = static_cast<double>(kAlarmPauseNs) / 1e9;
  nb::class_<Alarm>(module, "Alarm")
      .def("__init__",
           [](Alarm* self, std::vector<double> thresholds, double hysteresis, double pause_s) {
             new (self) Alarm(std::move(thresholds), hysteresis, nanoseconds(pause_s));
           })
      .def("update",
           [](Alarm& alarm, double time_s, double value) -> nb::object {
             const auto alert = alarm.update(nanoseconds(time_s), value);
             if (!alert) return nb::none();
             return nb::make_tuple(alert->level, alert->suppressed);
           })
      .def_prop_ro("active", &Alarm::active)
      .def_prop_ro("suppressed_total", &Alarm::suppressed_total);
  module.def("host_memory", &host_memory, nb::arg("root"));
}

}  // namespace gpumemprof::python

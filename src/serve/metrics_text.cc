#include "serve/metrics_text.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "report/words.h"

namespace gpumemprof {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

/// Writes families of samples; samples of a family come together, as both formats want.
class Exposition {
 public:
  explicit Exposition(MetricsFormat format) : format_(format) {}

  /// `unit`: "bytes", … , which the name ends with (counters apart from their "_total"); may be
  /// empty. A family without samples is not written.
  void family(std::string_view name, std::string_view type, std::string_view unit,
              std::string_view help) {
    name_ = name, type_ = type, unit_ = unit, help_ = help;
    began_ = false;
  }
  template <class Number>
  void sample(const Labels& labels, Number value) {
    if (!began_) begin();
    out_ += name_;
    if (type_ == "counter") out_ += "_total";
    char before = '{';
    for (const auto& [label, text] : labels) {
      out_ += fmt::format("{}{}=\"{}\"", before, label, escaped(text));
      before = ',';
    }
    if (before == ',') out_ += '}';
    out_ += fmt::format(" {}\n", value);
  }
  void sample(const Labels& labels, const Quantity& quantity) {
    if (quantity) sample(labels, *quantity.bytes);
  }
  std::string finish() {
    if (format_ == MetricsFormat::kOpenMetrics) out_ += "# EOF\n";
    return std::move(out_);
  }

 private:
  void begin() {
    began_ = true;
    const bool is_open = format_ == MetricsFormat::kOpenMetrics;
    // Prometheus' own format names a counter with its suffix, OpenMetrics without.
    const std::string name = std::string(name_) + (type_ == "counter" && !is_open ? "_total" : "");
    out_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help_, name, type_);
    if (is_open && !unit_.empty()) out_ += fmt::format("# UNIT {} {}\n", name, unit_);
  }
  static std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : printable(text)) {
      if (c == '\\' || c == '"') out += '\\';
      out += c;
    }
    return out;
  }

  MetricsFormat format_;
  std::string out_;
  std::string_view name_, type_, unit_, help_;
  bool began_ = false;
};

void add_host(const Picture& picture, Exposition* out) {
  const HostMemory& memory = picture.memory;
  out->family("gpumemprof_host_memory_total_bytes", "gauge", "bytes", "Memory of this machine.");
  out->sample({}, memory.total);
  out->family("gpumemprof_host_memory_available_bytes", "gauge", "bytes",
              "What could be had without swapping, as the kernel estimates.");
  out->sample({}, memory.available);
  out->family("gpumemprof_host_memory_limit_bytes", "gauge", "bytes",
              "The lowest limit of the cgroup of this exporter.");
  out->sample({}, memory.limit);
  out->family("gpumemprof_host_memory_limit_used_bytes", "gauge", "bytes",
              "Use of the cgroup that has the limit, without its page cache.");
  out->sample({}, memory.limit_used);
  out->family("gpumemprof_kernel_oom_kills", "counter", "",
              "Processes that the kernel killed for want of memory.");
  if (picture.oom_kills) out->sample({}, *picture.oom_kills);
}

void add_accelerators(const PictureAccelerators& accelerators, Exposition* out) {
  const auto labels = [](const PictureAccelerator& device) -> Labels {
    return {{"device", device.name}, {"model", device.model}, {"uuid", device.uuid}};
  };
  const auto& devices = accelerators.devices;
  out->family("gpumemprof_device_memory_total_bytes", "gauge", "bytes",
              "Memory of the accelerator.");
  for (const PictureAccelerator& device : devices) out->sample(labels(device), device.total);
  out->family("gpumemprof_device_memory_used_bytes", "gauge", "bytes",
              "Memory of the accelerator that any process uses.");
  for (const PictureAccelerator& device : devices) out->sample(labels(device), device.used);
  out->family("gpumemprof_device_memory_free_bytes", "gauge", "bytes",
              "Memory of the accelerator that nobody uses.");
  for (const PictureAccelerator& device : devices) out->sample(labels(device), device.free);
  out->family("gpumemprof_process_device_memory_bytes", "gauge", "bytes",
              "Memory of the accelerator that one process uses.");
  for (const PictureAccelerator& device : devices) {
    for (const auto& [pid, bytes] : device.by_pid)
      out->sample({{"device", device.name}, {"pid", std::to_string(pid)}}, bytes);
  }
}

Labels labels_of(const PictureRecording& recording) {
  Labels labels = {{"pid", std::to_string(recording.pid)},
                   {"program", program_name(recording.command)}};
  if (!recording.is_here) labels.emplace_back("host", recording.host);
  if (recording.rank) labels.emplace_back("rank", std::to_string(*recording.rank));
  return labels;
}

void add_recordings(const Picture& picture, Exposition* out) {
  const auto& all = picture.recordings;
  out->family("gpumemprof_recordings", "gauge", "", "Recordings that grow now.");
  out->sample({}, all.size());
  out->family("gpumemprof_process_resident_bytes", "gauge", "bytes",
              "Resident memory (RSS) of a recorded process.");
  for (const PictureRecording& one : all) out->sample(labels_of(one), one.resident);
  out->family("gpumemprof_recording_events", "counter", "", "Events of the recording.");
  for (const PictureRecording& one : all) out->sample(labels_of(one), one.events);
  out->family("gpumemprof_recording_lost_events", "gauge", "",
              "Events that are missing in the recording, as far as is known.");
  for (const PictureRecording& one : all) out->sample(labels_of(one), one.lost_events);
  out->family("gpumemprof_recording_exact", "gauge", "",
              "1 where the figures of the recording are exact, 0 where something is missing.");
  for (const PictureRecording& one : all)
    out->sample(labels_of(one), one.exact && one.problem.empty() ? 1 : 0);
}

/// Calls `put` with the labels of each device of each recording.
template <class Put>
void for_devices(const Picture& picture, Put put) {
  for (const PictureRecording& recording : picture.recordings) {
    for (const PictureDevice& device : recording.devices) {
      Labels labels = labels_of(recording);
      labels.emplace_back("device", device.name);
      put(labels, device);
    }
  }
}

void add_recorded_devices(const Picture& picture, Exposition* out) {
  using Device = PictureDevice;
  const auto family = [&](std::string_view name, std::string_view type, std::string_view unit,
                          std::string_view help, auto value) {
    out->family(name, type, unit, help);
    for_devices(picture, [&](const Labels& labels, const Device& device) {
      if (const auto known = value(device)) out->sample(labels, *known);
    });
  };
  const auto some = [](uint64_t value) { return std::optional(value); };
  family("gpumemprof_recording_allocated_bytes", "gauge", "bytes",
         "What the program's tensors hold now.",
         [&](const Device& d) { return some(d.allocated); });
  family("gpumemprof_recording_reserved_bytes", "gauge", "bytes",
         "What the framework's allocator holds of the device.",
         [](const Device& d) { return d.reserved.bytes; });
  family("gpumemprof_recording_peak_bytes", "gauge", "bytes",
         "The highest allocated_bytes so far, over all events.",
         [&](const Device& d) { return some(d.peak); });
  family("gpumemprof_recording_live_blocks", "gauge", "", "Blocks that are allocated now.",
         [&](const Device& d) { return some(d.live_blocks); });
  family("gpumemprof_recording_leak_bytes_per_second", "gauge", "",
         "How fast the floor of what is live rises, where it does.",
         [](const Device& d) { return d.leak_bytes_per_second; });
  family("gpumemprof_recording_allocations", "counter", "", "Allocations so far.",
         [&](const Device& d) { return some(d.alloc_count); });
  family("gpumemprof_recording_frees", "counter", "", "Frees so far.",
         [&](const Device& d) { return some(d.free_count); });
  family("gpumemprof_recording_refused_allocations", "counter", "",
         "Requests for memory that were refused (out of memory).",
         [&](const Device& d) { return some(d.refused); });
}

}  // namespace

MetricsFormat metrics_format(std::string_view accept) {
  return accept.find("application/openmetrics-text") != accept.npos ? MetricsFormat::kOpenMetrics
                                                                    : MetricsFormat::kPrometheus;
}

std::string metrics_type(MetricsFormat format) {
  return format == MetricsFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string metrics_text(const Picture& picture, std::string_view version, MetricsFormat format) {
  Exposition out(format);
  out.family("gpumemprof_build_info", "gauge", "", "The version of this exporter.");
  out.sample({{"version", std::string(version)}}, 1);
  add_host(picture, &out);
  add_accelerators(picture.accelerators, &out);
  add_recordings(picture, &out);
  add_recorded_devices(picture, &out);
  out.family("gpumemprof_alerts", "counter", "", "Alerts since the exporter began.");
  out.sample({{"level", "warning"}}, picture.warning_count);
  out.sample({{"level", "critical"}}, picture.critical_count);
  return out.finish();
}

}  // namespace gpumemprof

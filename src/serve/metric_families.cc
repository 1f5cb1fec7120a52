#include "serve/metric_families.h"

namespace gpumemprof {
namespace {

/// Takes families one after the other, and the samples of each.
class MetricCollector {
 public:
  /// A family without samples is not told.
  void family(std::string_view name, std::string_view type, std::string_view unit,
              std::string_view help) {
    drop_empty();
    families_.push_back(
        {name, type == "counter" ? MetricKind::kCounter : MetricKind::kGauge, unit, help, {}});
  }
  void sample(MetricLabels labels, uint64_t value) {
    families_.back().samples.push_back({std::move(labels), value});
  }
  void sample(MetricLabels labels, int64_t value) {
    families_.back().samples.push_back({std::move(labels), value});
  }
  void sample(MetricLabels labels, double value) {
    families_.back().samples.push_back({std::move(labels), value});
  }
  void sample(MetricLabels labels, const Quantity& quantity) {
    if (quantity) sample(std::move(labels), *quantity.bytes);
  }
  std::vector<MetricFamily> finish() {
    drop_empty();
    return std::move(families_);
  }

 private:
  void drop_empty() {
    if (!families_.empty() && families_.back().samples.empty()) families_.pop_back();
  }
  std::vector<MetricFamily> families_;
};

void add_host(const Picture& picture, MetricCollector* out) {
  const HostMemory& memory = picture.memory;
  out->family("gpumemprof_host_memory_total_bytes", "gauge", "bytes", "Memory of this machine.");
  out->sample({}, memory.total);
  out->family("gpumemprof_host_memory_available_bytes", "gauge", "bytes",
              "Memory available without swapping, estimated by the kernel.");
  out->sample({}, memory.available);
  out->family("gpumemprof_host_memory_limit_bytes", "gauge", "bytes",
              "The lowest memory limit of this exporter's cgroup.");
  out->sample({}, memory.limit);
  out->family("gpumemprof_host_memory_limit_used_bytes", "gauge", "bytes",
              "Memory use of the limiting cgroup, without its page cache.");
  out->sample({}, memory.limit_used);
  out->family("gpumemprof_kernel_oom_kills", "counter", "", "Kernel OOM kills.");
  if (picture.oom_kills) out->sample({}, *picture.oom_kills);
}

void add_accelerators(const PictureAccelerators& accelerators, MetricCollector* out) {
  const auto labels = [](const PictureAccelerator& device) -> MetricLabels {
    return {{"device", device.name}, {"model", device.model}, {"uuid", device.uuid}};
  };
  const auto& devices = accelerators.devices;
  out->family("gpumemprof_device_memory_total_bytes", "gauge", "bytes",
              "Memory of the accelerator.");
  for (const PictureAccelerator& device : devices) out->sample(labels(device), device.total);
  out->family("gpumemprof_device_memory_used_bytes", "gauge", "bytes",
              "Memory of the accelerator in use by all processes.");
  for (const PictureAccelerator& device : devices) out->sample(labels(device), device.used);
  out->family("gpumemprof_device_memory_free_bytes", "gauge", "bytes",
              "Free memory of the accelerator.");
  for (const PictureAccelerator& device : devices) out->sample(labels(device), device.free);
  out->family("gpumemprof_device_utilization_ratio", "gauge", "ratio",
              "Utilization of the accelerator, from 0 to 1, reported by its driver.");
  for (const PictureAccelerator& device : devices) {
    if (device.utilization_percent)
      out->sample(labels(device), static_cast<double>(*device.utilization_percent.value) / 100);
  }
  out->family("gpumemprof_process_device_memory_bytes", "gauge", "bytes",
              "Memory of the accelerator in use by one process.");
  for (const PictureAccelerator& device : devices) {
    for (const auto& [pid, bytes] : device.by_pid)
      out->sample({{"device", device.name}, {"pid", std::to_string(pid)}}, bytes);
  }
}

void add_recordings(const Picture& picture, MetricCollector* out) {
  const auto& all = picture.recordings;
  out->family("gpumemprof_recordings", "gauge", "", "Running recordings.");
  out->sample({}, uint64_t{all.size()});
  out->family("gpumemprof_process_resident_bytes", "gauge", "bytes",
              "Resident memory (RSS) of a recorded process.");
  for (const PictureRecording& one : all) out->sample(labels_of(one), one.resident);
  out->family("gpumemprof_process_host_bytes", "gauge", "bytes",
              "Resident memory of a recorded process by class: pinned by the driver, other shared "
              "memory, pages of files, the rest. Their sum is the resident memory.");
  for (const PictureRecording& one : all) {
    const HostIdentity sum = host_identity(one.host_memory);
    const auto put = [&](const char* of, double bytes) {
      MetricLabels labels = labels_of(one);
      labels.emplace_back("class", of);
      out->sample(std::move(labels), bytes);
    };
    for (const auto& [of, term] : {std::pair("pinned", &sum.pinned),
                                   std::pair("shared", &sum.shared), std::pair("file", &sum.file)})
      if (term->bytes) put(of, static_cast<double>(*term->bytes));
    if (sum.rest_bytes) put("rest", static_cast<double>(*sum.rest_bytes));
  }
  out->family("gpumemprof_cgroup_bytes", "gauge", "bytes",
              "What the cgroup with the least room is charged for, by class; rest is in none yet.");
  for (const auto& [of, term] :
       {std::pair("anonymous", &picture.cgroup.anonymous), std::pair("file", &picture.cgroup.file),
        std::pair("shared", &picture.cgroup.shared), std::pair("kernel", &picture.cgroup.kernel)}) {
    if (term->bytes) out->sample({{"class", of}}, *term->bytes);
  }
  if (const auto rest = rest_of(picture.cgroup))
    out->sample({{"class", "rest"}}, static_cast<double>(*rest));
  out->family("gpumemprof_recording_events", "counter", "", "Events of the recording.");
  for (const PictureRecording& one : all) {
    if (one.problem.empty()) out->sample(labels_of(one), one.events);
  }
  out->family("gpumemprof_recording_lost_events", "gauge", "",
              "Events known to be missing in the recording.");
  for (const PictureRecording& one : all) {
    if (one.problem.empty()) out->sample(labels_of(one), one.lost_events);
  }
  out->family("gpumemprof_recording_age_seconds", "gauge", "seconds",
              "Time since the figures of the recording were read.");
  for (const PictureRecording& one : all) {
    if (one.problem.empty()) out->sample(labels_of(one), one.age_seconds);
  }
  out->family("gpumemprof_recording_exact", "gauge", "",
              "1 if the figures are exact, 0 if events are missing or the last reading is older than 2 s.");
  for (const PictureRecording& one : all)
    out->sample(labels_of(one), uint64_t{one.exact && one.problem.empty()});
}

/// Calls `put` with the labels of each device of each recording.
template <class Put>
void for_devices(const Picture& picture, Put put) {
  for (const PictureRecording& recording : picture.recordings) {
    for (const PictureDevice& device : recording.devices) {
      MetricLabels labels = labels_of(recording);
      labels.emplace_back("device", device.name);
      put(labels, device);
    }
  }
}

void add_recorded_devices(const Picture& picture, MetricCollector* out) {
  using Device = PictureDevice;
  const auto family = [&](std::string_view name, std::string_view type, std::string_view unit,
                          std::string_view help, auto value) {
    out->family(name, type, unit, help);
    for_devices(picture, [&](const MetricLabels& labels, const Device& device) {
      if (const auto known = value(device)) out->sample(labels, *known);
    });
  };
  const auto some = [](uint64_t value) { return std::optional(value); };
  family("gpumemprof_recording_allocated_bytes", "gauge", "bytes", "Bytes in live tensors.",
         [&](const Device& d) { return some(d.allocated); });
  out->family("gpumemprof_recording_category_bytes", "gauge", "bytes",
              "Bytes in live tensors of one category, if the recording has categories.");
  for_devices(picture, [&](const MetricLabels& labels, const Device& device) {
    for (const FollowedCategory& kind : device.categories.all) {
      MetricLabels of_kind = labels;
      of_kind.emplace_back("category", kind.name);
      out->sample(std::move(of_kind), kind.bytes);
    }
  });
  family("gpumemprof_recording_reserved_bytes", "gauge", "bytes",
         "Bytes that the framework's allocator reserved from the device.",
         [](const Device& d) { return d.reserved.bytes; });
  family("gpumemprof_recording_peak_bytes", "gauge", "bytes",
         "Peak of allocated_bytes so far, over all events.",
         [&](const Device& d) { return some(d.peak); });
  family("gpumemprof_recording_live_blocks", "gauge", "", "Live blocks.",
         [&](const Device& d) { return some(d.live_blocks); });
  family("gpumemprof_recording_leak_bytes_per_second", "gauge", "",
         "Growth rate of the minimum of live memory; 0 if it does not grow; absent if unknown.",
         [](const Device& d) { return d.leak_bytes_per_second; });
  family("gpumemprof_recording_allocations", "counter", "", "Allocations so far.",
         [&](const Device& d) { return some(d.alloc_count); });
  family("gpumemprof_recording_frees", "counter", "", "Frees so far.",
         [&](const Device& d) { return some(d.free_count); });
  family("gpumemprof_recording_refused_allocations", "counter", "",
         "Refused requests (out of memory).", [&](const Device& d) { return some(d.refused); });
}

/// A sum of which libraries are told by name, the largest first.
void add_parts(const MetricLabels& labels, const PictureSum& of, MetricCollector* out) {
  constexpr size_t kMostLibraries = 32;
  const auto put = [&](const char* part, const std::string& library, uint64_t bytes) {
    MetricLabels more = labels;
    more.emplace_back("part", part), more.emplace_back("library", library);
    out->sample(std::move(more), bytes);
  };
  const DeviceIdentity& sum = of.sum;
  if (sum.contexts_are_known) put("contexts", "", sum.contexts_bytes);
  put("modules", "", sum.modules_bytes), put("rounding", "", sum.rounding_bytes);
  put("framework", "", sum.framework_bytes);
  size_t told = 0;
  uint64_t rest = 0;
  for (const DriverLibrary& library : of.moment.libraries) {
    if (library.is_framework) continue;
    if (++told <= kMostLibraries)
      put("library", library.name, library.bytes);
    else
      rest += library.bytes;
  }
  if (told > kMostLibraries) put("library", "", rest);
}

void add_sums(const Picture& picture, MetricCollector* out) {
  const auto for_sums = [&](auto put) {
    for (const PictureRecording& recording : picture.recordings) {
      for (const PictureSum& sum : recording.sums) {
        MetricLabels labels = labels_of(recording);
        labels.emplace_back("device", sum.name),
            labels.emplace_back("accelerator", sum.accelerator);
        put(std::move(labels), sum);
      }
    }
  };
  const auto family = [&](std::string_view name, std::string_view help, auto term) {
    out->family(name, "gauge", "bytes", help);
    for_sums([&](MetricLabels labels, const PictureSum& of) {
      if (const auto& known = of.sum.*term) out->sample(std::move(labels), *known);
    });
  };
  using Sum = DeviceIdentity;
  family("gpumemprof_sum_device_used_bytes",
         "Device memory in use: the driver's own, other processes, this process, and no known "
         "process.",
         &Sum::device_used_bytes);
  family("gpumemprof_sum_driver_reserved_bytes", "Memory reserved by the driver itself.",
         &Sum::reserved_bytes);
  family("gpumemprof_sum_other_processes_bytes", "Device memory in use by other processes.",
         &Sum::others_bytes);
  family("gpumemprof_sum_no_process_bytes", "Device memory in use by no known process.",
         &Sum::of_no_process_bytes);
  family("gpumemprof_sum_process_used_bytes",
         "Device memory in use by the recorded process: its parts and the unexplained rest.",
         &Sum::process_bytes);
  out->family("gpumemprof_sum_part_bytes", "gauge", "bytes",
              "Parts of the recorded process's memory: contexts, modules, libraries by name, "
              "rounding to pages, and the framework's reserved bytes.");
  for_sums([&](const MetricLabels& labels, const PictureSum& of) { add_parts(labels, of, out); });
  family(
      "gpumemprof_sum_unexplained_bytes",
      "Memory of the recorded process that no part explains; negative if the parts exceed the use.",
      &Sum::unexplained_bytes);
  family("gpumemprof_sum_allocated_bytes", "Framework memory in tensors.",
         &Sum::framework_allocated_bytes);
  family("gpumemprof_sum_cached_bytes", "Framework memory cached by its allocator.",
         &Sum::framework_cached_bytes);
  family("gpumemprof_sum_unservable_bytes",
         "Cached memory in free pieces of segments pinned by live blocks.",
         &Sum::framework_unservable_bytes);
  const auto host = [&](std::string_view name, std::string_view help, auto bytes) {
    out->family(name, "gauge", "bytes", help);
    for (const PictureRecording& one : picture.recordings)
      if (one.has_driver) out->sample(labels_of(one), one.*bytes);
  };
  host("gpumemprof_process_pinned_bytes", "Pinned host memory allocated by the driver.",
       &PictureRecording::pinned_bytes);
  host("gpumemprof_process_registered_bytes", "Host memory of the program pinned by the driver.",
       &PictureRecording::registered_bytes);
}

}  // namespace

MetricLabels labels_of(const PictureRecording& recording) {
  MetricLabels labels = {{"pid", std::to_string(recording.pid)},
                         {"program", program_name(recording.command)}};
  if (!recording.is_here) labels.emplace_back("host", recording.host);
  if (recording.rank) labels.emplace_back("rank", std::to_string(*recording.rank));
  return labels;
}

std::vector<MetricFamily> metric_families(const Picture& picture, std::string_view version) {
  MetricCollector out;
  out.family("gpumemprof_build_info", "gauge", "", "Version of this exporter.");
  out.sample({{"version", std::string(version)}}, uint64_t{1});
  add_host(picture, &out);
  add_accelerators(picture.accelerators, &out);
  add_recordings(picture, &out);
  add_recorded_devices(picture, &out);
  add_sums(picture, &out);
  out.family("gpumemprof_refused_allocations", "counter", "",
             "Refused requests (out of memory) of all recordings since the exporter started, also of "
             "those that ended.");
  out.sample({}, picture.refused_count);
  out.family("gpumemprof_alerts", "counter", "", "Alerts since the exporter started.");
  out.sample({{"level", "warning"}}, picture.warning_count);
  out.sample({{"level", "critical"}}, picture.critical_count);
  return out.finish();
}

}  // namespace gpumemprof

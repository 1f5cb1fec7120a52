#include "analysis/device_truth.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "recording/samples_file.h"

namespace gpumemprof {
namespace {

using Point = RecordedSamples::Point;

/// The series of one device: its own figures, and by process what it uses.
struct DeviceSeries {
  size_t used = SIZE_MAX, reserved = SIZE_MAX;
  std::map<int64_t, size_t> of_processes;  ///< by PID
  std::vector<size_t> of_others;           ///< of processes that this PID namespace does not show
};

std::map<std::string, DeviceSeries> devices_of(const RecordedSamples& samples) {
  std::map<std::string, DeviceSeries> out;
  for (size_t i = 0; i < samples.series.size(); ++i) {
    const SampleKey& key = samples.series[i];
    const bool is_whole =
        key.device.starts_with("nvidia:") && key.device.find(' ') == std::string::npos;
    if (!is_whole) continue;
    DeviceSeries& device = out[key.device];
    if (key.pid == 0 && key.field == "used_bytes") device.used = i;
    if (key.pid == 0 && key.field == "reserved_bytes") device.reserved = i;
    if (key.pid != 0 && key.field == "used_bytes") device.of_processes[key.pid] = i;
    if (key.pid != 0 && key.field == "used_bytes_of_driver_pid") device.of_others.push_back(i);
  }
  return out;
}

const Point* told_at(const RecordedSamples& samples, size_t series, size_t look) {
  const Point* point = series == SIZE_MAX ? nullptr : samples.at(series, look);
  return point == nullptr || point->kind == SampledKind::kGone ? nullptr : point;
}

std::optional<uint64_t> number_at(const RecordedSamples& samples, size_t series, size_t look) {
  const Point* point = told_at(samples, series, look);
  return point && point->kind == SampledKind::kNumber ? std::optional(point->number) : std::nullopt;
}

/// The sum of all processes but `pid`; nothing where one of them is not told.
std::optional<uint64_t> others_at(const RecordedSamples& samples, const DeviceSeries& device,
                                  int64_t pid, size_t look) {
  uint64_t sum = 0;
  const auto add = [&](size_t series) {
    const Point* point = told_at(samples, series, look);
    if (!point) return true;  // it is not there
    return point->kind == SampledKind::kNumber && !__builtin_add_overflow(sum, point->number, &sum);
  };
  for (const auto& [other, series] : device.of_processes) {
    if (other != pid && !add(series)) return std::nullopt;
  }
  for (size_t series : device.of_others) {
    if (!add(series)) return std::nullopt;
  }
  return sum;
}

}  // namespace

std::vector<TruthOfProcess> device_truths(const std::vector<RecordedSamples>& all) {
  std::vector<TruthOfProcess> out;
  for (const RecordedSamples& samples : all) {
    const auto devices = devices_of(samples);
    std::map<int64_t, size_t> devices_of_process;
    for (const auto& [name, device] : devices) {
      for (const auto& [pid, series] : device.of_processes) ++devices_of_process[pid];
    }
    for (const auto& [name, device] : devices) {
      for (const auto& [pid, series] : device.of_processes) {
        if (devices_of_process[pid] != 1 || pid <= 0 || pid > UINT32_MAX) continue;
        for (size_t look = 0; look < samples.looks.size(); ++look) {
          const auto used = number_at(samples, series, look);
          if (!used) continue;
          out.push_back({static_cast<uint32_t>(pid),
                         samples.host,
                         {.time_ns = samples.looks[look].time_ns,
                          .device_used_bytes = number_at(samples, device.used, look),
                          .process_used_bytes = used,
                          .others_used_bytes = others_at(samples, device, pid, look),
                          .reserved_bytes = number_at(samples, device.reserved, look)}});
        }
      }
    }
  }
  std::ranges::stable_sort(out, {}, [](const TruthOfProcess& one) { return one.truth.time_ns; });
  return out;
}

}  // namespace gpumemprof

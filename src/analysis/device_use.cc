#include "analysis/device_use.h"

#include <algorithm>
#include <map>
#include <utility>

#include "recording/samples_file.h"

namespace gpumemprof {
namespace {

constexpr const char* kUsed = "used_bytes";
constexpr const char* kResident = "resident_bytes";
constexpr const char* kHost = "host";

SampledBytes as_bytes(const RecordedSamples& of, const RecordedSamples::Point* point) {
  if (point == nullptr) return {std::nullopt, "it was not told at this sample"};
  if (point->kind == SampledKind::kNumber) return {point->number, {}};
  return {std::nullopt, of.texts[point->number]};
}

/// What is said of one memory at the look that the walk is at.
struct MemoryNow {
  using Point = RecordedSamples::Point;
  const Point *total = nullptr, *used = nullptr, *rest = nullptr, *limit = nullptr;
  const Point* processes = nullptr;            ///< its own statement on who uses it
  std::map<int64_t, const Point*> by_process;  ///< those that are told now, by PID
  MemoryUse use;
};

/// Walks once over the looks of one file.
class UseOfFile {
 public:
  explicit UseOfFile(const RecordedSamples& samples) : samples_(samples) {
    for (uint32_t series = 0; series < samples.series.size(); ++series) {
      for (const auto& point : samples.points[series]) changes_.push_back({series, &point});
    }
    std::ranges::stable_sort(changes_, {}, [](const Change& c) { return c.point->look; });
  }

  void add_to(DeviceUse* out, std::optional<uint64_t> peak_time_ns) {
    size_t next = 0;
    for (size_t look = 0; look < samples_.looks.size(); ++look) {
      for (; next < changes_.size() && changes_[next].point->look == look; ++next)
        apply(changes_[next]);
      for (auto& [device, memory] : memories_) add_look(look, device == kHost, &memory);
    }
    for (auto& [device, memory] : memories_) {
      MemoryUse& use = memory.use;
      if (use.looks.empty()) continue;
      use.name = device, use.run_pid = samples_.run_pid;
      find_highest(peak_time_ns, &use);
      (device == kHost ? out->hosts : out->devices).push_back(std::move(use));
    }
  }
  /// Why no device was there, at the last look.
  const std::string& why_no_devices() const { return why_none_; }

 private:
  using Point = RecordedSamples::Point;
  struct Change {
    uint32_t series;
    const Point* point;
  };

  void apply(const Change& change) {
    const SampleKey& key = samples_.series[change.series];
    const Point* point = change.point->kind == SampledKind::kGone ? nullptr : change.point;
    if (key.device == "accelerators") {
      const bool is_absent = point != nullptr && point->kind == SampledKind::kAbsent;
      if (key.field == "devices") why_none_ = is_absent ? samples_.texts[point->number] : "";
      return;
    }
    MemoryNow& memory = memories_[key.device];
    const bool is_host = key.device == kHost;
    if (key.pid != 0) {
      if (key.field != (is_host ? kResident : kUsed)) return;
      if (point == nullptr)
        memory.by_process.erase(key.pid);
      else
        memory.by_process[key.pid] = point;
      return;
    }
    if (key.field == kUsed) memory.used = point;
    if (key.field == "available_bytes") memory.rest = point;
    if (key.field == "processes") memory.processes = point;
    if (key.field == "total_bytes") memory.total = point;
    if (key.field == "limit_bytes") memory.limit = point;
    if (point == nullptr) return;
    memory.use.source = key.source;
    if (key.field == "total_bytes") memory.use.total = as_bytes(samples_, point);
    if (key.field == "limit_bytes") memory.use.limit = as_bytes(samples_, point);
    if (key.field == "name" && point->kind == SampledKind::kText)
      memory.use.model = samples_.texts[point->number];
  }

  /// Of the run are the processes whose host memory is sampled.
  SampledBytes own(const MemoryNow& memory, bool is_host) const {
    const Point* list = memory.processes;
    if (!is_host && list != nullptr && list->kind == SampledKind::kAbsent)
      return as_bytes(samples_, list);
    const auto host = memories_.find(kHost);
    uint64_t sum = 0;
    for (const auto& [pid, point] : memory.by_process) {
      if (host == memories_.end() || !host->second.by_process.contains(pid)) continue;
      if (point->kind != SampledKind::kNumber) return as_bytes(samples_, point);
      if (__builtin_add_overflow(sum, point->number, &sum))
        return {std::nullopt, "the figures are impossible"};
    }
    return {sum, {}};
  }

  SampledBytes used_of_host(const MemoryNow& memory) const {
    const SampledBytes total = as_bytes(samples_, memory.total);
    const SampledBytes rest = as_bytes(samples_, memory.rest);
    if (!total.bytes) return total;
    if (!rest.bytes) return rest;
    return {*total.bytes - std::min(*total.bytes, *rest.bytes), {}};
  }

  void add_look(size_t look, bool is_host, MemoryNow* memory) const {
    // Before its driver was asked, and after it was lost, a device is not told at all.
    if ((is_host ? memory->total : memory->used) == nullptr) return;
    UseAtLook at{samples_.looks[look].time_ns,
                 is_host ? used_of_host(*memory) : as_bytes(samples_, memory->used),
                 own(*memory, is_host)};
    MemoryUse& use = memory->use;
    if (samples_.looks[look].cause == SampleCause::kOom) use.at_refusals.push_back(at);
    use.looks.push_back(std::move(at));
  }

  static void find_highest(std::optional<uint64_t> peak, MemoryUse* use) {
    const auto is_higher = [](const SampledBytes& a, const std::optional<UseAtLook>& than,
                              SampledBytes UseAtLook::* field) {
      return a.bytes && (!than || *a.bytes > *((*than).*field).bytes);
    };
    for (const UseAtLook& look : use->looks) {
      if (is_higher(look.used, use->highest, &UseAtLook::used)) use->highest = look;
      if (is_higher(look.own, use->highest_own, &UseAtLook::own)) use->highest_own = look;
    }
    if (!peak) return;
    use->at_peak = *std::ranges::min_element(use->looks, {}, [&](const UseAtLook& look) {
      return look.time_ns > *peak ? look.time_ns - *peak : *peak - look.time_ns;
    });
  }

  const RecordedSamples& samples_;
  std::vector<Change> changes_;  // of all series, in order of their looks
  std::map<std::string, MemoryNow> memories_;
  std::string why_none_;
};

}  // namespace

std::optional<DeviceUse> device_use(const std::vector<RecordedSamples>& samples,
                                    std::optional<uint64_t> peak_time_ns) {
  DeviceUse out;
  out.first_time_ns = UINT64_MAX;
  for (const RecordedSamples& one : samples) {
    out.missing_looks += one.missing_looks;
    if (one.looks.empty()) continue;
    out.looks += one.looks.size();
    out.first_time_ns = std::min(out.first_time_ns, one.looks.front().time_ns);
    out.last_time_ns = std::max(out.last_time_ns, one.looks.back().time_ns);
    UseOfFile use(one);
    use.add_to(&out, peak_time_ns);
    if (out.no_devices_because.empty()) out.no_devices_because = use.why_no_devices();
  }
  if (out.looks == 0) return std::nullopt;
  if (!out.devices.empty()) out.no_devices_because.clear();
  return out;
}

}  // namespace gpumemprof

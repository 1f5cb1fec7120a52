#include "analysis/driver/device_use.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "recording/samples_file.h"

namespace gpumemprof {
namespace {

constexpr const char* kUsed = "used_bytes";
constexpr const char* kResident = "resident_bytes";
constexpr const char* kOutside = "used_bytes_of_driver_pid";
constexpr const char* kHost = "host";
constexpr const char* kOutsideReason = "the driver's PIDs belong to another PID namespace";
constexpr const char* kNobody = "no process of the run was in this sample";
constexpr const char* kMore = "the driver names more processes than were sampled";

// Of one file, and of all files together: 70 bytes each.
constexpr size_t kMostDevices = 1024, kMostUses = 4'000'000;
constexpr size_t kMostExtra = 64;  // looks at refused memory that are taken all the same

std::shared_ptr<const std::string> words(const char* text) {
  return std::make_shared<const std::string>(text);
}

/// What is said of one memory at the look that the walk is at.
struct MemoryNow {
  using Point = RecordedSamples::Point;
  const Point *total = nullptr, *used = nullptr, *rest = nullptr, *limit = nullptr;
  const Point* processes = nullptr;            ///< its own statement on who uses it
  std::map<int64_t, const Point*> by_process;  ///< those that are told now, by PID
  size_t outside = 0;                          ///< told by a number that is nobody's here
  bool own_is_known = false;                   ///< `own` holds as nothing changed since
  SampledBytes own;
  MemoryUse use;
};

/// Walks once over the looks of one file.
class UseOfFile {
 public:
  UseOfFile(const RecordedSamples& samples, size_t most_uses)
      : samples_(samples), most_uses_(most_uses), reasons_(samples.texts.size()) {
    for (uint32_t series = 0; series < samples.series.size(); ++series) {
      memory_of_.push_back(memory_of(samples.series[series].device));
      if (memory_of_.back() == kLeftOut) continue;
      for (const auto& point : samples.points[series]) changes_.push_back({series, &point});
    }
    is_told_.resize(samples.series.size());
    std::ranges::stable_sort(changes_, {}, [](const Change& c) { return c.point->look; });
  }

  void add_to(DeviceUse* out, std::optional<uint64_t> peak_time_ns) {
    const size_t all = samples_.looks.size() * memories_.size();
    const size_t step =
        most_uses_ == 0 ? SIZE_MAX : std::max<size_t>(1, (all + most_uses_ - 1) / most_uses_);
    size_t next = 0, extra = 0;
    for (size_t look = 0; look < samples_.looks.size(); ++look) {
      for (; next < changes_.size() && changes_[next].point->look == look; ++next)
        apply(changes_[next]);
      const bool is_extra = samples_.looks[look].cause == SampleCause::kOom && extra < kMostExtra;
      if (look % step != 0 && !is_extra) continue;
      extra += look % step != 0 ? 1 : 0;
      for (MemoryNow& memory : memories_) add_look(look, &memory);
    }
    for (const auto& [device, at] : index_) {
      MemoryUse& use = memories_[at].use;
      if (use.looks.empty()) continue;
      use.run_pid = samples_.run_pid;
      find_highest(peak_time_ns, &use);
      // Whom it is about was not there any more, or not yet: nothing is known of it.
      const auto withdraw = [&](UseAtLook& look) {
        if (look.own.bytes == 0u) look.own = {std::nullopt, nobody_};
      };
      if (device == kHost && use.at_peak) withdraw(*use.at_peak);
      if (device == kHost) std::ranges::for_each(use.at_refusals, withdraw);
      (device == kHost ? out->hosts : out->devices).push_back(std::move(use));
    }
    if (step > 1) {
      out->left_out.push_back(samples_.path + ": of its machine samples one in " +
                              std::to_string(step) + " is used");
    }
    if (!devices_left_out_.empty()) {
      out->left_out.push_back(samples_.path + ": " + std::to_string(devices_left_out_.size()) +
                              " devices of its samples are left out");
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
  static constexpr size_t kLeftOut = SIZE_MAX, kNoMemory = SIZE_MAX - 1;

  size_t memory_of(std::string_view device) {
    if (device == "accelerators") return kNoMemory;
    const auto known = index_.find(device);
    if (known != index_.end()) return known->second;
    if (device != kHost && memories_.size() >= kMostDevices) {
      devices_left_out_.insert(device);
      return kLeftOut;
    }
    memories_.emplace_back().use.name = device;
    if (device == kHost) host_ = memories_.size() - 1;
    return index_[device] = memories_.size() - 1;
  }

  SampledBytes as_bytes(const Point* point) {
    if (point == nullptr) return {std::nullopt, not_told_};
    if (point->kind == SampledKind::kNumber) return {point->number, nullptr};
    auto& reason = reasons_[point->number];
    if (!reason) reason = std::make_shared<const std::string>(samples_.texts[point->number]);
    return {std::nullopt, reason};
  }

  void apply(const Change& change) {
    const SampleKey& key = samples_.series[change.series];
    const Point* point = change.point->kind == SampledKind::kGone ? nullptr : change.point;
    const bool was_told = is_told_[change.series];
    is_told_[change.series] = point != nullptr;
    if (memory_of_[change.series] == kNoMemory) {
      const bool is_absent = point != nullptr && point->kind == SampledKind::kAbsent;
      if (key.field == "devices") why_none_ = is_absent ? samples_.texts[point->number] : "";
      return;
    }
    MemoryNow& memory = memories_[memory_of_[change.series]];
    memory.own_is_known = false;
    const bool is_host = key.device == kHost;
    if (key.pid != 0) {
      if (key.field == kOutside && was_told != (point != nullptr))
        memory.outside += point != nullptr ? 1 : SIZE_MAX;  // -1
      if (key.field != (is_host ? kResident : kUsed)) return;
      // Who is of the run changes.
      if (is_host && was_told != (point != nullptr))
        for (MemoryNow& other : memories_) other.own_is_known = false;
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
    // Of a device that shares the host's memory the driver tells the rest.
    if (key.field == "total_bytes" || memory.use.source.empty()) memory.use.source = key.source;
    if (key.field == "total_bytes") memory.use.total = as_bytes(point);
    if (key.field == "limit_bytes") memory.use.limit = as_bytes(point);
    if (key.field == "name" && point->kind == SampledKind::kText)
      memory.use.model = samples_.texts[point->number];
  }

  /// Of the run are the processes whose host memory is sampled.
  SampledBytes own(const MemoryNow& memory, bool is_host) {
    const Point* list = memory.processes;
    if (!is_host && (list == nullptr || list->kind != SampledKind::kNumber)) return as_bytes(list);
    uint64_t sum = 0;
    bool is_any = false;
    for (const auto& [pid, point] : memory.by_process) {
      if (host_ == SIZE_MAX || !memories_[host_].by_process.contains(pid)) continue;
      is_any = true;
      if (point->kind != SampledKind::kNumber) return as_bytes(point);
      if (__builtin_add_overflow(sum, point->number, &sum)) return {std::nullopt, impossible_};
    }
    if (is_host) return {sum, nullptr};
    // One of those may be the run's: that none of them is, nobody has said.
    if (!is_any && memory.outside != 0) return {std::nullopt, outside_};
    if (list->number > memory.by_process.size() + memory.outside) return {std::nullopt, more_};
    return {sum, nullptr};
  }

  SampledBytes used_of_host(const MemoryNow& memory) {
    const SampledBytes total = as_bytes(memory.total), rest = as_bytes(memory.rest);
    if (!total.bytes) return total;
    if (!rest.bytes) return rest;
    return {*total.bytes - std::min(*total.bytes, *rest.bytes), nullptr};
  }

  void add_look(size_t look, MemoryNow* memory) {
    const bool is_host = host_ != SIZE_MAX && memory == &memories_[host_];
    // Before its driver was asked, and after it was lost, a device is not told at all.
    if ((is_host ? memory->total : memory->used) == nullptr) return;
    if (!memory->own_is_known) memory->own = own(*memory, is_host);
    memory->own_is_known = true;
    UseAtLook at{samples_.looks[look].time_ns,
                 is_host ? used_of_host(*memory) : as_bytes(memory->used), memory->own};
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
  size_t most_uses_;
  std::vector<std::shared_ptr<const std::string>> reasons_;  // of texts, once they are asked for
  std::vector<Change> changes_;    // of all series, in order of their looks
  std::vector<size_t> memory_of_;  // by series
  std::vector<bool> is_told_;      // by series
  std::vector<MemoryNow> memories_;
  std::map<std::string_view, size_t> index_;  // in memories_, by name
  std::set<std::string_view> devices_left_out_;
  size_t host_ = SIZE_MAX;
  std::string why_none_;
  const std::shared_ptr<const std::string> not_told_ = words(
                                               "the driver did not report it for this sample"),
                                           impossible_ = words("the figures are impossible"),
                                           outside_ = words(kOutsideReason), more_ = words(kMore),
                                           nobody_ = words(kNobody);
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
    UseOfFile use(one, kMostUses / samples.size());
    use.add_to(&out, peak_time_ns);
    if (out.no_devices_because.empty()) out.no_devices_because = use.why_no_devices();
  }
  if (out.looks == 0) return std::nullopt;
  if (!out.devices.empty()) out.no_devices_because.clear();
  return out;
}

}  // namespace gpumemprof

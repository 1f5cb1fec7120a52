#include "analysis/driver/device_truth.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "recording/samples_file.h"
#include "trace/tables.h"

namespace gpumemprof {
namespace {

using Point = RecordedSamples::Point;

// A run of a day on eight devices, each with a process, has 700,000.
constexpr size_t kMostTruths = 1'000'000;
constexpr size_t kMostOwnProcesses = 1024;  // of one file, that were recorded and have a device

enum class Said : uint8_t { kDeviceUsed, kReserved, kProcesses, kOfProcess, kOfDriverPid, kPlace };

struct SeriesOfDevice {
  size_t series;
  Said said;
  int64_t pid;
};
using SeriesList = std::vector<SeriesOfDevice>;

std::optional<Said> said_by(const SampleKey& key) {
  if (key.pid == 0) {
    // Figures of the host are no device's: a device that shares its memory has none of its own.
    if (key.source != "NVML") return std::nullopt;
    if (key.field == "used_bytes") return Said::kDeviceUsed;
    if (key.field == "reserved_bytes") return Said::kReserved;
    if (key.field == "processes") return Said::kProcesses;
    if (key.field == "pci_bus_id") return Said::kPlace;
    return std::nullopt;
  }
  if (key.field == "used_bytes") return Said::kOfProcess;
  if (key.field == "used_bytes_of_driver_pid") return Said::kOfDriverPid;
  return std::nullopt;
}

/// What holds on one device at the look that the walk is at. Each change is added once, so that a
/// look costs what changed in it, and the recorded processes that are told.
class DeviceNow {
 public:
  DeviceNow(const RecordedSamples& samples, const SeriesList& device, const std::set<int64_t>& own)
      : own_(own) {
    for (size_t i = 0; i < device.size(); ++i)
      for (const Point& point : samples.points[device[i].series]) changes_.push_back({i, &point});
    std::ranges::stable_sort(changes_, {}, [](const auto& change) { return change.second->look; });
    device_ = &device;
  }

  /// Takes what changed at this look; looks come in order.
  void advance(size_t look) {
    for (; next_ < changes_.size() && changes_[next_].second->look <= look; ++next_)
      apply((*device_)[changes_[next_].first], *changes_[next_].second);
  }
  const std::map<int64_t, const Point*>& told() const { return told_own_; }
  std::optional<uint64_t> used() const { return number(used_); }
  std::optional<uint64_t> reserved() const { return number(reserved_); }
  /// The sum of all processes but one that uses `own_bytes`. Nothing where one of them is not told,
  /// where more are there than are listed, or where a number is of two namespaces: whether that is
  /// one process or two, nobody knows.
  std::optional<uint64_t> others(uint64_t own_bytes) const {
    const auto listed = number(processes_);
    if (!listed || *listed > users_.size() || unknown_ != 0 || twice_ != 0) return std::nullopt;
    const unsigned __int128 rest = sum_ - own_bytes;
    return rest > UINT64_MAX ? std::nullopt : std::optional(static_cast<uint64_t>(rest));
  }

 private:
  struct User {  // by the two fields that may tell of a PID
    const Point* of[2] = {nullptr, nullptr};
  };
  static std::optional<uint64_t> number(const Point* point) {
    return point && point->kind == SampledKind::kNumber ? std::optional(point->number)
                                                        : std::nullopt;
  }
  void count(const Point* point, bool is_coming) {
    if (!point) return;
    const auto bytes = number(point);
    if (!bytes) return void(is_coming ? ++unknown_ : --unknown_);
    sum_ = is_coming ? sum_ + *bytes : sum_ - *bytes;
  }
  void apply(const SeriesOfDevice& series, const Point& change) {
    const Point* point = change.kind == SampledKind::kGone ? nullptr : &change;
    if (series.said == Said::kDeviceUsed) used_ = point;
    if (series.said == Said::kReserved) reserved_ = point;
    if (series.said == Said::kProcesses) processes_ = point;
    if (series.said != Said::kOfProcess && series.said != Said::kOfDriverPid) return;
    User& user = users_[series.pid];
    const Point*& one = user.of[series.said == Said::kOfProcess ? 0 : 1];
    twice_ -= user.of[0] && user.of[1] ? 1 : 0;
    count(one, false), one = point, count(one, true);
    twice_ += user.of[0] && user.of[1] ? 1 : 0;
    if (!user.of[0] && !user.of[1]) users_.erase(series.pid);
    if (series.said != Said::kOfProcess || !own_.contains(series.pid)) return;
    if (point)
      told_own_[series.pid] = point;
    else
      told_own_.erase(series.pid);
  }

  const std::set<int64_t>& own_;
  const SeriesList* device_;
  std::vector<std::pair<size_t, const Point*>> changes_;
  size_t next_ = 0;
  const Point *used_ = nullptr, *reserved_ = nullptr, *processes_ = nullptr;
  std::map<int64_t, User> users_;
  std::map<int64_t, const Point*> told_own_;
  unsigned __int128 sum_ = 0;  // of at most 200,000 series: cannot overflow
  size_t unknown_ = 0, twice_ = 0;
};

class TruthsOfFile {
 public:
  TruthsOfFile(const RecordedSamples& samples, const std::set<int64_t>& recorded)
      : samples_(samples) {
    std::map<int64_t, std::set<std::string_view>> devices_of;
    for (size_t i = 0; i < samples.series.size(); ++i) {
      const SampleKey& key = samples.series[i];
      const bool is_whole =
          key.device.starts_with("nvidia:") && key.device.find(' ') == std::string::npos;
      const auto said = is_whole ? said_by(key) : std::nullopt;
      if (!said) continue;
      if (*said == Said::kPlace) {
        if (const auto place = place_in(i)) places_[key.device] = *place;
        continue;
      }
      devices_[key.device].push_back({i, *said, key.pid});
      if (*said == Said::kOfProcess && recorded.contains(key.pid))
        devices_of[key.pid].insert(key.device);
    }
    for (const auto& [pid, devices] : devices_of) {
      const bool is_told = std::ranges::all_of(
          devices, [&](std::string_view device) { return places_.contains(device); });
      if (devices.size() != 1 && !is_told) continue;
      if (own_.size() == kMostOwnProcesses) {
        ++left_out_;
        continue;
      }
      own_.insert(pid), used_.insert(devices.begin(), devices.end());
      if (devices.size() != 1) with_several_.insert(pid);
    }
  }

  /// False where there was no room for all.
  bool add_to(std::vector<TruthOfProcess>* out) const {
    for (const auto& [name, device] : devices_) {
      if (!used_.contains(name)) continue;
      const auto known = places_.find(name);
      const auto place = known == places_.end() ? std::nullopt : std::optional(known->second);
      DeviceNow now(samples_, device, own_);
      for (size_t look = 0; look < samples_.looks.size(); ++look) {
        now.advance(look);
        for (const auto& [pid, point] : now.told()) {
          if (point->kind != SampledKind::kNumber) continue;
          if (out->size() == kMostTruths) return false;
          out->push_back({static_cast<uint32_t>(pid),
                          !with_several_.contains(pid),
                          place,
                          samples_.host,
                          {.time_ns = samples_.looks[look].time_ns,
                           .device_used_bytes = now.used(),
                           .process_used_bytes = point->number,
                           .others_used_bytes = now.others(point->number),
                           .reserved_bytes = now.reserved(),
                           .why_no_process = {},
                           .why_no_others = {}}});
        }
      }
    }
    return true;
  }
  size_t left_out() const { return left_out_; }

 private:
  /// What a series of places says: a device does not move.
  std::optional<PciAddress> place_in(size_t series) const {
    for (const Point& point : samples_.points[series])
      if (point.kind == SampledKind::kText) return parse_pci_address(samples_.texts[point.number]);
    return std::nullopt;
  }

  const RecordedSamples& samples_;
  std::map<std::string_view, SeriesList> devices_;
  std::map<std::string_view, PciAddress> places_;
  std::set<int64_t> own_;            // recorded PIDs whose devices are known
  std::set<int64_t> with_several_;   // of these
  std::set<std::string_view> used_;  // the devices of those
  size_t left_out_ = 0;
};

}  // namespace

std::vector<TruthOfProcess> device_truths(const std::vector<RecordedSamples>& all,
                                          const std::vector<Process>& processes,
                                          std::vector<std::string>* problems) {
  std::vector<TruthOfProcess> out;
  std::map<std::string_view, std::set<int64_t>> recorded;  // PIDs by host
  for (const Process& process : processes)
    if (process.pid != 0) recorded[process.host].insert(process.pid);
  for (const RecordedSamples& samples : all) {
    const auto here = recorded.find(samples.host);
    if (here == recorded.end()) continue;
    const TruthsOfFile truths(samples, here->second);
    if (truths.left_out() != 0) {
      problems->push_back(samples.path + ": samples of " + std::to_string(truths.left_out()) +
                          " processes are not compared with the driver's sum: too many");
    }
    if (!truths.add_to(&out)) {
      problems->push_back(samples.path + ": only the first " + std::to_string(kMostTruths) +
                          " samples of processes are compared with the driver's sum");
      break;
    }
  }
  std::ranges::stable_sort(out, {}, [](const TruthOfProcess& one) { return one.truth.time_ns; });
  return out;
}

}  // namespace gpumemprof

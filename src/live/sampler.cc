#include "live/sampler.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/steady_clock.h"
#include "devices/proc_text.h"
#include "devices/process_memory.h"
#include "live/quantity_json.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void put_process(Json* metadata, const ProcessMemory& memory, const std::string& command) {
  (*metadata)["command"] = command;
  put(metadata, "rss_bytes", memory.resident);
  put(metadata, "peak_rss_bytes", memory.peak_resident);
  put(metadata, "anonymous_bytes", memory.anonymous);
  put(metadata, "file_bytes", memory.file);
  put(metadata, "shared_bytes", memory.shared);
  put(metadata, "swapped_bytes", memory.swapped);
  // PSS is read once a second; in between it is left out rather than repeated.
  if (memory.proportional || memory.proportional.absent_because != "not requested")
    put(metadata, "pss_bytes", memory.proportional);
}

void put_followed(Json* metadata, const FollowedDevice& device, const FollowedState& state) {
  const int64_t now_ns = steady_now_ns();
  const std::string why = why_not_exact(state, now_ns);
  (*metadata)["basis"] = why.empty() ? "exact" : "recording";
  (*metadata)["age_seconds"] = std::round(age_seconds(state, now_ns) * 1e3) / 1e3;
  (*metadata)["device"] = device.name;
  (*metadata)["live_blocks"] = device.live_count;
  (*metadata)["peak_bytes"] = device.peak_bytes;
  (*metadata)["alloc_count"] = device.alloc_count;
  (*metadata)["free_count"] = device.free_count;
  (*metadata)["oom_count"] = device.oom_count;
  if (!why.empty()) (*metadata)["unknown"]["exact"] = why;
}

DeviceRoot devices_of(const SamplerOptions& options) {
  if (options.devices) return *options.devices;
  // A test's root has no driver of the real machine.
  return options.root.empty() ? DeviceRoot::from_environment() : DeviceRoot{options.root, ""};
}

}  // namespace

int64_t wall_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * kSecondNs + now.tv_nsec;
}

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

Sampler::Sampler(SamplerOptions options)
    : options_(std::move(options)), proc_(options_.root + "/proc"), devices_(devices_of(options_)) {
  options_.identity.host = host_name();
}

Result<Sampler> Sampler::open(const SamplerOptions& options) {
  Sampler sampler(options);
  if (options.pid) {
    const auto all = list_processes(sampler.proc_);
    const auto found = std::ranges::find(all, *options.pid, [](const auto& s) { return s.id.pid; });
    if (found == all.end() || found->state == 'Z' || found->state == 'X')
      return fail(ErrorCode::kNotFound, "no process " + std::to_string(*options.pid));
    sampler.targets_.push_back({find_live_recording(sampler.proc_, found->id), std::nullopt, {}});
    sampler.follow(&sampler.targets_.back());
  } else {
    sampler.look_for_recordings();
    sampler.whole_machine_ = sampler.targets_.empty();
  }
  if (sampler.whole_machine_ || options.device) sampler.devices_.look(wall_clock_ns(), true);
  return sampler;
}

void Sampler::follow(Target* target) {
  if (target->recording.id.pid > 0)
    target->visible = VisibleDevices::of_environment(
        read_proc_text(proc_ + '/' + std::to_string(target->recording.id.pid) + "/environ"));
  if (target->follower || target->recording.file.empty()) return;
  if (auto follower = RecordingFollower::open(options_.root + target->recording.file))
    target->follower = std::move(*follower);
}

/// Processes of a run begin and end; each that was seen stays until it ends.
void Sampler::look_for_recordings() {
  waiting_.clear();
  for (LiveRecording& found : list_live_recordings(proc_, &waiting_)) {
    const auto is_known = [&](const Target& t) { return t.recording.id == found.id; };
    if (std::ranges::any_of(targets_, is_known)) continue;
    targets_.push_back({std::move(found), std::nullopt, {}});
    follow(&targets_.back());
    if (began_) news_.push_back(describe(targets_.back()));
  }
}

TelemetryEvent Sampler::blank() const {
  TelemetryEvent event = options_.identity;
  event.timestamp_ns = wall_clock_ns();
  event.event_type = "sample";
  event.collector = "gpumemprof.cpu_tracker";
  event.used_bytes = usable_.used.bytes;
  event.free_bytes = usable_.free.bytes;
  event.total_bytes = usable_.total.bytes;
  return event;
}

void Sampler::finish(TelemetryEvent event, Json metadata, std::vector<TelemetryEvent>* out) {
  if (!event.used_bytes && !metadata["unknown"].contains("device_used_bytes"))
    metadata["unknown"]["device_used_bytes"] = usable_.used.absent_because;
  if (metadata["unknown"].empty()) metadata.erase("unknown");
  event.metadata = dump(metadata);
  const std::tuple key{event.pid, event.collector, event.device_id};
  const auto before = last_allocated_.find(key);
  // The first sample is where counting begins: no change yet.
  if (before != last_allocated_.end() && event.allocated_bytes)
    event.change_bytes = static_cast<int64_t>(*event.allocated_bytes - before->second);
  if (event.allocated_bytes) last_allocated_[key] = *event.allocated_bytes;
  is_told_ = true;
  out->push_back(std::move(event));
}

void Sampler::add_machine(std::vector<TelemetryEvent>* out) {
  const auto& accelerators = devices_.now().devices;
  if (options_.device && *options_.device < static_cast<int>(accelerators.size())) return;
  TelemetryEvent event = blank();
  Json metadata = {{"basis", usable_.basis}, {"device", "cpu"}};
  metadata["note"] = "allocated, reserved and used are the use of this memory by all processes";
  event.allocated_bytes = event.reserved_bytes = usable_.used.bytes;
  if (!usable_.used) {
    for (const char* name : {"allocator_allocated_bytes", "allocator_reserved_bytes"})
      metadata["unknown"][name] = usable_.used.absent_because;
  }
  finish(std::move(event), std::move(metadata), out);
}

void Sampler::add_process(Target* target, std::vector<TelemetryEvent>* out) {
  const int pid = target->recording.id.pid;
  const ProcessMemory memory = read_process_memory(proc_, pid, with_pss_);
  if (!memory.exists) return;
  Json process = Json::object();
  put_process(&process, memory, target->recording.command);
  process["total_basis"] = usable_.basis;
  FollowedState state;
  if (target->follower) {
    if (auto looked = target->follower->look()) state = std::move(*looked);
  }
  bool any = false, accelerated = false;
  for (const FollowedDevice& device : state.devices) {
    accelerated = accelerated || !device.is_cpu;
    if (options_.device && (device.is_cpu || device.index != *options_.device)) continue;
    any = true;
    TelemetryEvent event = blank();
    Json metadata = process;
    put_followed(&metadata, device, state);
    event.pid = pid;
    event.allocated_bytes = device.framework_allocated_bytes.value_or(device.live_bytes);
    event.reserved_bytes = device.framework_reserved_bytes.value_or(device.live_bytes);
    if (!device.is_cpu) {
      event.collector = "gpumemprof.cuda_tracker";
      event.device_id = std::max(device.index, 0);
      metadata.erase("total_basis");
      put_matched(devices_, target->visible, pid, device.index, &event, &metadata);
    }
    // A process may use both frameworks, and each has its own memory on the same device.
    if (device.is_tensorflow) event.collector = "tfmemprof.memory_tracker";
    finish(std::move(event), std::move(metadata), out);
  }
  if (!accelerated) add_driver_figures(*target, out);
  if (any || options_.device) return;
  TelemetryEvent event = blank();
  event.pid = pid;
  event.allocated_bytes = event.reserved_bytes = memory.resident.bytes;
  process["basis"] = "process_rss";
  process["device"] = "cpu";
  process["note"] = "allocated and reserved are the process's RSS: it has no recorded allocations";
  finish(std::move(event), std::move(process), out);
}

/// One event per accelerator, as a whole. With --device only that one.
void Sampler::add_accelerators(std::vector<TelemetryEvent>* out) {
  for (const Accelerator& device : devices_.now().devices) {
    if (options_.device && device.number != *options_.device) continue;
    TelemetryEvent event = blank();
    event.collector = collector_of(device);
    event.device_id = device.number;
    Json metadata = {{"basis", "device"}, {"device", device.vendor}};
    metadata["note"] =
        device.memory.source.empty()
            ? "allocated, reserved and used are the use of this device by all processes"
            : "this device shares the host's memory: allocated, reserved and used are the host's";
    put_accelerator(device, device.memory, &event, &metadata);
    event.allocated_bytes = event.reserved_bytes = event.used_bytes;
    if (!event.used_bytes)
      for (const char* name : {"allocator_allocated_bytes", "allocator_reserved_bytes"})
        metadata["unknown"][name] = device.memory.used.absent_because;
    finish(std::move(event), std::move(metadata), out);
  }
}

/// For a process without a recording of its devices: its use by the drivers, once a second.
void Sampler::add_driver_figures(const Target& target, std::vector<TelemetryEvent>* out) {
  if (!devices_.fresh_processes()) return;
  const int pid = target.recording.id.pid;
  for (const Accelerator& device : devices_.now().devices) {
    if (options_.device && device.number != *options_.device) continue;
    if (!uses(device, pid)) continue;
    const Quantity own = used_by(device, pid);
    TelemetryEvent event = blank();
    event.collector = collector_of(device);
    event.device_id = device.number;
    event.pid = pid;
    event.allocated_bytes = event.reserved_bytes = own.bytes;
    Json metadata = {{"basis", "driver"}, {"device", device.vendor}};
    metadata["command"] = target.recording.command;
    metadata["note"] =
        "allocated and reserved are the driver's figure for the process on this device";
    put_accelerator(device, device.memory, &event, &metadata);
    if (!own)
      for (const char* name : {"allocator_allocated_bytes", "allocator_reserved_bytes"})
        metadata["unknown"][name] = own.absent_because;
    finish(std::move(event), std::move(metadata), out);
  }
}

std::vector<TelemetryEvent> Sampler::sample() {
  std::vector<TelemetryEvent> out;
  usable_ = usable_memory(read_host_memory(options_.root));
  began_ = true;
  const int64_t now = wall_clock_ns();
  devices_.look(now);
  with_pss_ = now >= next_pss_ns_;
  if (with_pss_) next_pss_ns_ = now + kSecondNs;
  if (now >= next_search_ns_) {
    next_search_ns_ = now + kSecondNs;
    if (!options_.pid) look_for_recordings();
    // A process may have its first event, and so its file, only after watching began.
    for (Target& target : targets_) {
      if (target.follower) continue;
      if (options_.pid) target.recording = find_live_recording(proc_, target.recording.id);
      follow(&target);
    }
  }
  if (whole_machine_) add_machine(&out);
  if (whole_machine_) add_accelerators(&out);
  for (Target& target : targets_) add_process(&target, &out);
  // If no recorded process uses the requested device, the whole device is watched.
  if (options_.device && !options_.pid && !whole_machine_ && out.empty()) add_accelerators(&out);
  forget_ended();
  // The recorded processes ended before the first sample: then the machine is watched.
  if (out.empty() && !options_.pid && !options_.device && !is_told_) {
    whole_machine_ = true;
    news_.push_back("this machine's memory: the processes have ended");
    add_machine(&out);
    add_accelerators(&out);
  }
  if (targets_.empty() && options_.pid) state_ = WatchState::kEnded;
  return out;
}

/// A reused PID is another process, and its first sample has no change.
void Sampler::forget_ended() {
  std::erase_if(targets_, [&](const Target& target) {
    const int pid = target.recording.id.pid;
    const auto stat = parse_stat(read_proc_text(proc_ + '/' + std::to_string(pid) + "/stat"));
    const bool is_same = stat && stat->id == target.recording.id;
    if (is_same && stat->state != 'Z' && stat->state != 'X') return false;
    std::erase_if(last_allocated_,
                  [&](const auto& last) { return std::get<0>(last.first) == pid; });
    return true;
  });
}

std::vector<std::string> Sampler::take_news() { return std::exchange(news_, {}); }

std::string Sampler::describe(const Target& target) {
  return "process " + std::to_string(target.recording.id.pid) + " (" +
         target.recording.command.substr(0, 60) + ")" +
         (target.follower ? ", recorded: exact counters" : ", not recorded: its RSS");
}

std::string Sampler::subject() const {
  if (whole_machine_) {
    const size_t count = devices_.now().devices.size();
    const bool one = options_.device && *options_.device < static_cast<int>(count);
    std::string what = one ? "accelerator " + std::to_string(*options_.device)
                           : std::string("this machine's memory");
    if (!one && count > 0)
      what += " and its " +
              (count == 1 ? std::string("accelerator") : std::to_string(count) + " accelerators");
    if (waiting_.empty()) return what + " (no recorded process of yours is running)";
    const LiveRecording& run = waiting_.front();
    const std::string more =
        waiting_.size() == 1 ? "" : " and " + std::to_string(waiting_.size() - 1) + " more";
    return what + " (pid " + std::to_string(run.id.pid) + " " + run.command.substr(0, 60) + more +
           ": " + kNoAllocationYet + ")";
  }
  std::string text;
  for (const Target& target : targets_) {
    text += (text.empty() ? "" : "; ") + describe(target);
  }
  return text;
}

std::string Sampler::why_no_device() {
  if (!options_.device) return "";
  const auto is_asked_for = [&](const FollowedDevice& device) {
    return !device.is_cpu && device.index == *options_.device;
  };
  const auto has_it = [&](Target& target) {
    const auto state = target.follower ? target.follower->look() : Result<FollowedState>();
    return state && std::ranges::any_of(state->devices, is_asked_for);
  };
  const Accelerators& all = devices_.now();
  if (all.devices.empty() && std::ranges::any_of(targets_, has_it)) return "";
  return why_not_listed(all, *options_.device);
}

std::vector<std::string> Sampler::notes() const {
  if (!options_.device) return {};
  const Accelerators& all = devices_.now();
  if (!all.devices.empty()) return {};
  return {"--device " + std::to_string(*options_.device) +
          ": the device's total, use and other processes are missing: " + all.notes.at(0)};
}

}  // namespace gpumemprof

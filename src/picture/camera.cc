#include "picture/camera.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/size.h"
#include "base/steady_clock.h"
#include "devices/proc_text.h"
#include "devices/process_memory.h"
#include "live/sampler.h"
#include "picture/device_sums.h"
#include "picture/picture_follower.h"
#include "run/processes.h"

namespace gpumemprof {
namespace {

constexpr int64_t kSearchPauseNs = 2'000'000'000;
constexpr int64_t kLastEventsNs = 2'000'000'000;  // until a process that ended has its events on disk
constexpr int64_t kStaleSeconds = 600;
constexpr size_t kMostPassedOver = 10'000;

/// A number of a process's first environment; empty where it has none, or it may not be read.
std::optional<int64_t> environment_number(const std::string& text, const std::string& name) {
  const std::string wanted = '\0' + name + '=';
  const std::string whole = '\0' + text;
  const size_t at = whole.find(wanted);
  if (at == whole.npos) return std::nullopt;
  const size_t begin = at + wanted.size();
  const auto number = whole_number(whole.substr(begin, whole.find('\0', begin) - begin));
  if (!number || *number > INT32_MAX) return std::nullopt;
  return static_cast<int64_t>(*number);
}

/// Whether the file was written to of late. Its pages are mapped by who records: the kernel sets
/// the time when a page becomes dirty again, at least every half minute.
bool was_written_lately(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && time(nullptr) - st.st_mtime < kStaleSeconds;
}

void remember(uint64_t value, size_t most, std::vector<uint64_t>* history) {
  if (history->size() >= most) history->erase(history->begin());
  history->push_back(value);
}

}  // namespace

struct Camera::Memory {
  std::vector<uint64_t> history;
  std::vector<uint64_t> history_ns;  // when; of a steady clock
  int64_t looked_ns = 0;
  uint64_t allocated = 0, alloc_count = 0, refused = 0;
  std::optional<double> bytes_per_second, allocs_per_second;
  bool growth_told = false;
};

struct Camera::Subject {
  LiveRecording recording;
  bool is_here = true;
  int inner_pid = 0;  // as the process itself sees it, and its recording says
  std::string host;
  std::optional<int64_t> rank;
  std::optional<RecordingFollower> follower;
  std::string problem;
  std::optional<Result<FollowedState>> state;  // of the last look
  bool has_exited = false;
  int64_t ended_ns = 0;  // when it was first seen to have ended, of a steady clock; 0: it runs
  std::map<std::string, Memory> memories;
  std::vector<PictureSum> sums;  // of the last time that the recording was read anew
  int64_t summed_ns = 0;         // when that was
};

bool Camera::is_of(const Result<RecordingFollower>& follower, const Subject& subject,
                   uint64_t start_ticks) {
  return follower && follower->pid() == subject.inner_pid && follower->start_ticks() == start_ticks;
}

Camera::Camera(CameraOptions options)
    : options_(std::move(options)),
      proc_(options_.root + "/proc"),
      host_(host_name()),
      kills_(options_.root),
      accelerators_(device_root_of(options_.root)) {}
Camera::~Camera() = default;

void Camera::set_thresholds(double warning_percent, double critical_percent) {
  options_.alerts.warning_percent = warning_percent;
  options_.alerts.critical_percent = critical_percent;
  memories_.clear();
}

void Camera::search() {
  waiting_.clear();
  for (LiveRecording& found : list_live_recordings(proc_, &waiting_)) {
    const Key key{host_, found.id.pid, found.id.start_ticks};
    if (subjects_.contains(key) || subjects_.size() >= kMostRecordings) continue;
    auto subject = std::make_unique<Subject>();
    subject->host = host_;
    subject->inner_pid = innermost_pid(proc_, found.id.pid);
    const std::string folder = proc_ + '/' + std::to_string(found.id.pid);
    subject->rank = environment_number(read_proc_text(folder + "/environ"), "RANK");
    auto follower = RecordingFollower::open(options_.root + found.file, options_.most_holders,
                                            follow_for_pictures);
    // In another container the path means another file.
    if (!is_of(follower, *subject, found.id.start_ticks))
      follower = RecordingFollower::open(folder + "/root" + found.file, options_.most_holders,
                                         follow_for_pictures);
    if (is_of(follower, *subject, found.id.start_ticks))
      subject->follower = std::move(*follower);
    else
      subject->problem =
          follower ? "its recording is not visible from here" : follower.error().message;
    // What a folder had of it is the same recording.
    std::erase_if(subjects_, [&](const auto& entry) {
      return !entry.second->is_here && entry.second->inner_pid == subject->inner_pid &&
             entry.second->recording.id.start_ticks == found.id.start_ticks;
    });
    subject->recording = std::move(found);
    subjects_.emplace(key, std::move(subject));
  }
  for (const std::string& folder : options_.folders) search_folder(folder, true);
}

/// A recording whose process cannot be seen from here, as in another container: it is taken for
/// running until its program says that it has ended, or nothing was written for ten minutes, as
/// after `kill -9`. Of this machine's own processes search() knows better.
void Camera::search_folder(const std::string& folder, bool with_folders) {
  DIR* listing = opendir(folder.c_str());
  if (!listing) return;
  while (const dirent* entry = readdir(listing)) {
    const std::string name = entry->d_name;
    // A recording is a folder itself, so that of several recordings has them one level down.
    if (with_folders && entry->d_type == DT_DIR && !name.starts_with('.'))
      search_folder(folder + '/' + name, false);
    if (!name.ends_with(".gmp") || subjects_.size() >= kMostRecordings) continue;
    const std::string path = folder + '/' + name;
    if (passed_over_.contains(path) || !was_written_lately(path)) continue;
    auto follower = RecordingFollower::open(path, options_.most_holders, follow_for_pictures);
    if (!follower) continue;
    const auto known = std::ranges::find_if(subjects_, [&](const auto& entry) {
      const Subject& subject = *entry.second;
      return subject.is_here && is_of(follower, subject, subject.recording.id.start_ticks);
    });
    if (known != subjects_.end()) {
      Subject& subject = *known->second;
      if (!subject.follower) subject.follower = std::move(*follower);
      continue;
    }
    if (passed_over_.size() >= kMostPassedOver) passed_over_.clear();
    if (follower->host() == host_) {
      passed_over_.insert(path);
      continue;
    }
    const Key key{follower->host(), follower->pid(), follower->start_ticks()};
    if (subjects_.contains(key)) continue;
    auto state = follower->look();
    if (!state) continue;
    if (state->has_exited) {
      passed_over_.insert(path);
      continue;
    }
    auto subject = std::make_unique<Subject>();
    subject->is_here = false;
    subject->inner_pid = follower->pid();
    subject->host = follower->host();
    subject->recording = {
        {follower->pid(), follower->start_ticks()}, follower->command(), folder, path};
    subject->follower = std::move(*follower);
    subject->state = std::move(state);
    subjects_.emplace(key, std::move(subject));
  }
  closedir(listing);
}

bool Camera::is_running(const Subject& subject) const {
  if (!subject.is_here) return !subject.has_exited && was_written_lately(subject.recording.file);
  const std::string folder = proc_ + '/' + std::to_string(subject.recording.id.pid);
  const auto stat = parse_stat(read_proc_text(folder + "/stat"));
  return stat && stat->id == subject.recording.id && stat->state != 'Z' && stat->state != 'X';
}

/// What ended is read until its last events are on disk: a request that was refused often ends its
/// program.
void Camera::note_ends(int64_t now_ns) {
  std::erase_if(subjects_, [&](const auto& entry) {
    Subject& subject = *entry.second;
    if (subject.ended_ns == 0) {
      if (!is_running(subject)) subject.ended_ns = now_ns;
      return subject.ended_ns != 0 && !subject.follower;
    }
    return !subject.state || !*subject.state ||
           (*subject.state)->looked_steady_ns - subject.ended_ns >= kLastEventsNs;
  });
}

void Camera::add_device(Subject& subject, const FollowedDevice& device, const FollowedState& state,
                        PictureRecording* recording) {
  PictureDevice& out = recording->devices.emplace_back();
  out.name = device.name, out.is_cpu = device.is_cpu;
  out.allocated = device.framework_allocated_bytes.value_or(device.live_bytes);
  out.reserved = device.framework_reserved_bytes
                     ? Quantity::of(*device.framework_reserved_bytes)
                     : Quantity::absent("this allocator does not report reserved bytes");
  out.peak = std::max(device.peak_bytes, out.allocated);
  out.live_blocks = device.live_count;
  out.alloc_count = device.alloc_count, out.free_count = device.free_count;
  out.refused = device.oom_count;
  out.holders = device.holders;
  out.categories = device.categories;

  Memory& memory = subject.memories[device.name];
  // A look that was answered from memory tells nothing of the time since.
  if (state.looked_steady_ns > memory.looked_ns) {
    if (memory.looked_ns != 0) {
      const double seconds = static_cast<double>(state.looked_steady_ns - memory.looked_ns) * 1e-9;
      memory.bytes_per_second =
          (static_cast<double>(out.allocated) - static_cast<double>(memory.allocated)) / seconds;
      const uint64_t more = out.alloc_count - std::min(out.alloc_count, memory.alloc_count);
      memory.allocs_per_second = static_cast<double>(more) / seconds;
    }
    memory.looked_ns = state.looked_steady_ns;
    memory.allocated = out.allocated, memory.alloc_count = out.alloc_count;
    remember(out.allocated, options_.most_history, &memory.history);
    remember(static_cast<uint64_t>(memory.looked_ns), options_.most_history, &memory.history_ns);
  }
  out.bytes_per_second = memory.bytes_per_second;
  out.allocs_per_second = memory.allocs_per_second;
  out.leak_bytes_per_second = device.growth.bytes_per_second;
  out.why_no_leak = device.growth.why_none;
  out.history = memory.history;
  if (!memory.history_ns.empty()) {
    out.history_seconds =
        static_cast<double>(memory.history_ns.back() - memory.history_ns.front()) * 1e-9;
  }
}

void Camera::look_at_recordings(bool with_held) {
  const int64_t end_ns =
      options_.most_look_ns == 0 ? INT64_MAX : steady_now_ns() + options_.most_look_ns;
  auto at = subjects_.upper_bound(last_looked_);
  for (size_t i = 0; i < subjects_.size(); ++i, ++at) {
    if (at == subjects_.end()) at = subjects_.begin();
    Subject& subject = *at->second;
    if (!subject.follower) continue;
    subject.state = subject.follower->look(with_held);
    last_looked_ = at->first;
    if (steady_now_ns() >= end_ns) return;
  }
}

void Camera::add_recording(Subject& subject, Picture* picture) {
  PictureRecording& out = picture->recordings.emplace_back();
  out.pid = subject.recording.id.pid, out.start_ticks = subject.recording.id.start_ticks;
  out.is_here = subject.is_here, out.host = subject.host, out.rank = subject.rank;
  out.command = subject.recording.command, out.folder = subject.recording.folder;
  ProcessMemory memory;
  if (subject.is_here) memory = read_process_memory(proc_, out.pid, false);
  const Quantity unseen = Quantity::absent("its process is not visible from here");
  for (Quantity* one : {&memory.resident, &memory.anonymous, &memory.file, &memory.shared,
                        &memory.swapped})
    if (!subject.is_here) *one = unseen;
  out.resident = memory.resident;
  const std::string open_files = proc_ + '/' + std::to_string(out.pid) + "/fd";
  const bool may_pin = !subject.is_here || access(open_files.c_str(), R_OK | X_OK) != 0 ||
                       has_gpu_open(proc_, out.pid);
  out.host_memory = host_moment(memory, may_pin, static_cast<uint64_t>(picture->steady_ns));
  out.problem = subject.problem;
  if (!subject.follower) return;
  out.problem = "not read yet: reading takes longer than the interval";
  if (!subject.state) return;
  const Result<FollowedState>& state = *subject.state;
  out.problem = state ? "" : state.error().message;
  if (!state) return;
  out.age_seconds = age_seconds(*state, picture->steady_ns);
  subject.has_exited = state->has_exited;
  out.events = state->events, out.lost_events = state->lost_events;
  out.why_inexact = why_not_exact(*state, picture->steady_ns);
  out.exact = out.why_inexact.empty();
  for (const FollowedDevice& device : state->devices) add_device(subject, device, *state, &out);
  // What the drivers say and what the recording says are held against each other once, while both
  // are of this moment.
  if (state->looked_steady_ns > subject.summed_ns) {
    subject.summed_ns = state->looked_steady_ns;
    subject.sums = device_sums(state->driver.get(), said_,
                               subject.is_here ? std::optional(out.pid) : std::nullopt,
                               static_cast<uint64_t>(picture->steady_ns));
  }
  out.sums = subject.sums;
  out.has_driver = state->driver != nullptr;
  if (state->driver) {
    for (const DriverHost& host : state->driver->hosts)
      out.pinned_bytes += host.pinned_bytes, out.registered_bytes += host.registered_bytes;
    out.host_memory.pinned = HostTerm::of(out.pinned_bytes);
    out.host_memory.registered = HostTerm::of(out.registered_bytes);
  }
}

void Camera::add_processes(Picture* picture) {
  const long page = sysconf(_SC_PAGESIZE);
  std::vector<PictureProcess>& out = picture->processes;
  for (const ProcessStat& stat : list_processes(proc_)) {
    const std::string text = read_proc_text(proc_ + '/' + std::to_string(stat.id.pid) + "/statm");
    const size_t begin = text.find(' ') + 1;
    if (begin == 0 || page <= 0) continue;
    const auto pages = whole_number(text.substr(begin, text.find(' ', begin) - begin));
    if (pages && *pages > 0)
      out.push_back({stat.id.pid, "", *pages * static_cast<uint64_t>(page), false, std::nullopt});
  }
  std::ranges::sort(out, [](const PictureProcess& a, const PictureProcess& b) {
    return std::pair(b.resident_bytes, a.pid) < std::pair(a.resident_bytes, b.pid);
  });
  if (out.size() > options_.most_processes) out.resize(options_.most_processes);
  for (PictureProcess& process : out) {
    process.command = command_line(proc_, process.pid);
    process.is_recorded = std::ranges::any_of(picture->recordings, [&](const auto& recording) {
      return recording.is_here && recording.pid == process.pid;
    });
    for (const PictureAccelerator& accelerator : picture->accelerators.devices) {
      const auto held = accelerator.by_pid.find(process.pid);
      if (held == accelerator.by_pid.end()) continue;
      process.accelerator_bytes = process.accelerator_bytes.value_or(0) + held->second;
    }
  }
}

void Camera::alert(const Picture& picture, bool is_critical, std::string subject,
                   std::string text) {
  ++(is_critical ? critical_count_ : warning_count_);
  if (alerts_.size() >= kMostAlerts) alerts_.pop_front();
  alerts_.push_back({picture.time_ns, is_critical, std::move(subject), std::move(text)});
}

void Camera::look_at_memory(const Picture& picture, const std::string& name, const Quantity& used,
                            const Quantity& total) {
  TelemetryEvent sample;
  sample.timestamp_ns = picture.time_ns;
  sample.used_bytes = used.bytes, sample.total_bytes = total.bytes;
  const auto found = memories_.try_emplace(name, options_.alerts).first->second.look(sample);
  if (found) alert(picture, found->event_type == "critical", name, found->context.value_or(""));
}

void Camera::tell_refusals(const Picture& picture, Subject* subject) {
  if (!subject->state || !*subject->state) return;
  const std::string who = subject_name({.pid = subject->recording.id.pid, .rank = subject->rank});
  for (const FollowedDevice& device : (*subject->state)->devices) {
    uint64_t& known = subject->memories[device.name].refused;
    if (device.oom_count <= known) continue;
    const uint64_t more = device.oom_count - known;
    refused_count_ += more;
    known = device.oom_count;
    alert(picture, true, who + ' ' + device.name,
          more == 1 ? "1 request for memory was refused"
                    : std::to_string(more) + " requests for memory were refused");
  }
}

void Camera::judge(Picture* picture) {
  look_at_memory(*picture, std::string("memory of the ") + picture->usable.basis,
                 picture->usable.used, picture->usable.total);
  for (const PictureAccelerator& device : picture->accelerators.devices)
    look_at_memory(*picture, device.name, device.used, device.total);
  for (const auto& [key, subject] : subjects_) tell_refusals(*picture, subject.get());
  for (const PictureRecording& recording : picture->recordings) {
    const auto found = subjects_.find({recording.host, recording.pid, recording.start_ticks});
    if (found == subjects_.end()) continue;
    for (const PictureDevice& device : recording.devices) {
      Memory& memory = found->second->memories[device.name];
      const std::string subject = subject_name(recording) + ' ' + device.name;
      const bool grows = device.leak_bytes_per_second.value_or(0) > 0;
      if (grows && !memory.growth_told) {
        const auto a_minute = static_cast<uint64_t>(*device.leak_bytes_per_second * 60);
        alert(*picture, false, subject, "grows by " + format_bytes(a_minute) + " a minute");
      }
      // One that cannot be told for a while is no other growth.
      if (device.leak_bytes_per_second) memory.growth_told = grows;
    }
  }
  if (const uint64_t killed = kills_.new_kills(); killed > 0) {
    alert(*picture, true, "kernel",
          "killed " + std::to_string(killed) + " processes (out of memory)");
  }
  picture->alerts.assign(alerts_.begin(), alerts_.end());
  picture->warning_count = warning_count_, picture->critical_count = critical_count_;
  picture->refused_count = refused_count_;
  picture->oom_kills = kills_.all();
}

Picture Camera::take(const SeeStacks& see) {
  Picture picture;
  picture.time_ns = wall_clock_ns();
  picture.steady_ns = steady_now_ns();
  picture.host = host_;
  picture.memory = read_host_memory(options_.root);
  picture.usable = usable_memory(picture.memory);
  picture.cgroup = cgroup_moment(picture.memory, static_cast<uint64_t>(picture.steady_ns));
  said_ = accelerators_.read(Depth::kEverything);
  picture.accelerators = in_a_picture(said_);
  if (picture.steady_ns >= next_search_ns_) {
    next_search_ns_ = picture.steady_ns + kSearchPauseNs;
    search();
  }
  picture.waiting = waiting_;
  note_ends(picture.steady_ns);
  look_at_recordings(see != nullptr);
  for (const auto& [key, subject] : subjects_) {
    if (subject->ended_ns != 0) continue;
    add_recording(*subject, &picture);
    if (see && subject->follower && subject->state && *subject->state)
      see(picture.recordings.back(), subject->follower->tables(), **subject->state);
  }
  add_processes(&picture);
  judge(&picture);
  return picture;
}

}  // namespace gpumemprof

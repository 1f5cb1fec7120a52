#include "run/watcher.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "run/elf.h"
#include "run/folder.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kEagerLooks = 8;                            // the first five seconds or so
constexpr std::string_view kAllocCpu = "_ZN3c109alloc_cpuEm";  // as the probe defines it
constexpr size_t kMaxLibraries = 1000;
constexpr size_t kMaxFinished = 10'000;  // a fork storm must not fill our memory

}  // namespace

DescendantWatcher::DescendantWatcher(int root, std::string folder, std::string proc)
    : root_(root), folder_(std::move(folder)), proc_(std::move(proc)), exits_(proc_) {}

bool DescendantWatcher::is_recorded(const ProcessId& id, const Known& known) const {
  return recorded_.contains(std::to_string(known.inner_pid) + '.' + std::to_string(id.start_ticks));
}

void DescendantWatcher::list_recorded() {
  recorded_.clear();
  for (const std::string& name : recorded_files(folder_)) {
    for (std::string& process : processes_named_by(name)) recorded_.insert(std::move(process));
  }
}

/// An open device is seen without disturbing the process, so that is looked for each time. Reading
/// the mappings takes its own lock for a moment: often at its beginning, when libraries are loaded,
/// then ever more seldom; and not at all once one was found.
void DescendantWatcher::look_for_gpu(const ProcessStat& stat, Known* known) {
  if (gpu_seen_) return;
  gpu_seen_ = has_gpu_open(proc_, stat.id.pid);
  if (gpu_seen_ || known->gpu_virtual_bytes == stat.virtual_bytes) return;
  const uint64_t look = ++known->looks_for_gpu;
  if (look > kEagerLooks && !std::has_single_bit(look)) return;
  known->gpu_virtual_bytes = stat.virtual_bytes;
  gpu_seen_ = read_mappings(proc_, stat.id.pid).gpu;
}

/// In a process that has PyTorch alone: its allocations pass through the probe, so no event means
/// that there was none. Not known of what is linked otherwise.
bool DescendantWatcher::probe_gets_calls(int pid, const Mappings& mappings) {
  if (!mappings.probe || mappings.c10.empty() || mappings.other_framework) return false;
  if (calls_by_name_.size() >= kMaxLibraries) return false;
  const auto [known, is_new] = calls_by_name_.try_emplace(mappings.c10, false);
  if (!is_new) return known->second;
  const std::string path = proc_ + '/' + std::to_string(pid) + "/root" + mappings.c10;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  known->second = elf_calls_by_name(fd, kAllocCpu);
  close(fd);
  return known->second;
}

void DescendantWatcher::examine(const ProcessStat& stat, Known* known) {
  if (stat.state == 'Z') return;  // what was known of it stays
  look_for_gpu(stat, known);
  if (is_recorded(stat.id, *known)) {
    torch_seen_ = true;
    return;
  }
  // Reading the mappings holds the process's own memory lock for a moment: only when its address
  // space has changed since, which loading a library and exec both do.
  if (known->virtual_bytes != stat.virtual_bytes) {
    Mappings now = read_mappings(proc_, stat.id.pid);
    if (!now.readable) {
      unreadable_command_ = command_line(proc_, stat.id.pid);
      return;
    }
    const int inner_pid = innermost_pid(proc_, stat.id.pid);
    std::string command = command_line(proc_, stat.id.pid);
    // Of a process that ends meanwhile a part of each of these is read, which tells nothing.
    if (!still_lives(proc_, stat.id)) return;
    known->virtual_bytes = stat.virtual_bytes;
    if (!now.torch) known->looks_with_torch = 0;  // a fork that has become another program
    known->mappings = now;
    known->probe_gets_calls = probe_gets_calls(stat.id.pid, now);
    known->inner_pid = inner_pid;
    if (!command.empty()) known->command = std::move(command);
  }
  if (!known->mappings.torch) return;
  ++known->looks_with_torch, torch_seen_ = true;
  if (known->mappings.probe) known->obstacle = why_it_cannot_record(proc_, stat.id.pid, folder_);
}

/// Up the chain of parents until the program, or a process known as its descendant, is met.
bool DescendantWatcher::is_descendant(const ProcessStat& stat, const ByPid& by_pid) const {
  const ProcessStat* p = &stat;
  // No chain is longer than the list, also where it changed while it was read.
  for (size_t steps = 0; p && steps <= by_pid.size(); ++steps) {
    if (p->id.pid == root_) return true;
    auto known = known_.find(p->id.pid);
    if (known != known_.end() && known->second.start_ticks == p->id.start_ticks) return true;
    auto parent = by_pid.find(p->parent);
    p = parent == by_pid.end() || p->parent == p->id.pid ? nullptr : parent->second;
  }
  return false;
}

bool DescendantWatcher::has_folder_in_environment(const ProcessStat& stat) {
  const auto [it, is_new] = strangers_.try_emplace(stat.id.pid, 0);
  if (stat.id.pid == getpid() || it->second == stat.id.start_ticks) return false;
  it->second = stat.id.start_ticks;
  return has_in_environment(proc_, stat.id.pid, "GPUMEMPROF_DIR=" + folder_);
}

void DescendantWatcher::retire(int pid, const Known& known) {
  if (known.looks_with_torch == 0 || finished_.size() >= kMaxFinished) return;
  finished_.push_back({{pid, known.start_ticks}, known});
}

void DescendantWatcher::look() {
  ++look_number_;
  any_alive_ = any_at_work_ = false;
  list_recorded();
  std::vector<ProcessStat> all = list_processes(proc_);
  ByPid by_pid;
  for (const ProcessStat& stat : all) by_pid.emplace(stat.id.pid, &stat);
  for (const ProcessStat& stat : all) {
    if (!is_descendant(stat, by_pid) && (root_ != 0 || !has_folder_in_environment(stat))) continue;
    Known& known = known_[stat.id.pid];
    if (known.start_ticks != stat.id.start_ticks) {  // new, or a PID that came back
      retire(stat.id.pid, known);
      known = Known{.start_ticks = stat.id.start_ticks, .inner_pid = stat.id.pid};
    }
    known.last_seen = look_number_;
    known.is_running = stat.state != 'Z';
    any_alive_ = any_alive_ || known.is_running;
    any_at_work_ = any_at_work_ || stat.state == 'R' || stat.state == 'D';
    examine(stat, &known);
    // Its file comes with its first event, which may be its last.
    if (known.is_running && stat.id.pid != root_) exits_.watch(stat.id, known.inner_pid);
  }
  exits_.look();
  std::erase_if(known_, [&](const auto& entry) {
    if (entry.second.last_seen == look_number_) return false;
    retire(entry.first, entry.second);
    return true;
  });
}

std::vector<ProcessExitStatus> DescendantWatcher::exits() const {
  std::vector<ProcessExitStatus> out;
  for (const ProcessExitStatus& one : exits_.ended()) {
    if (recorded_.contains(std::to_string(one.pid) + '.' + std::to_string(one.start_ticks)))
      out.push_back(one);
  }
  return out;
}

std::vector<ProcessId> DescendantWatcher::running() const {
  std::vector<ProcessId> out;
  for (const auto& [pid, known] : known_) {
    if (known.is_running) out.push_back({pid, known.start_ticks});
  }
  std::ranges::sort(out, [this](const ProcessId& a, const ProcessId& b) {
    return std::pair(a.pid != root_, a.pid) < std::pair(b.pid != root_, b.pid);
  });
  return out;
}

void DescendantWatcher::judge(const ProcessId& id, const Known& known,
                              std::vector<NotRecorded>* out) const {
  if (known.looks_with_torch == 0 || is_recorded(id, known)) return;
  std::string reason;
  if (!known.mappings.probe) {
    reason = "started without LD_PRELOAD (sudo, env -i, a static or setuid launcher)";
  } else if (!known.obstacle.empty()) {
    reason = known.obstacle;
  } else if (known.looks_with_torch > 1 && !known.probe_gets_calls) {
    reason =
        "PyTorch, TensorFlow or JAX was loaded, but no event arrived: no tensor was allocated, or "
        "the allocator's symbols were not bound to the probe (-Bsymbolic or static build)";
  } else {
    return;  // it allocated nothing, or was seen once: most likely between fork and exec
  }
  out->push_back({id.pid, known.command, reason});
}

bool DescendantWatcher::allocated_nothing() const {
  const auto nothing = [this](const ProcessId& id, const Known& known) {
    return known.looks_with_torch > 0 && known.probe_gets_calls && known.obstacle.empty() &&
           !is_recorded(id, known);
  };
  return std::ranges::any_of(finished_,
                             [&](const Finished& one) { return nothing(one.id, one.known); }) ||
         std::ranges::any_of(known_, [&](const auto& one) {
           return nothing({one.first, one.second.start_ticks}, one.second);
         });
}

std::vector<NotRecorded> DescendantWatcher::not_recorded() const {
  std::vector<NotRecorded> result;
  for (const Finished& one : finished_) judge(one.id, one.known, &result);
  for (const auto& [pid, known] : known_) judge({pid, known.start_ticks}, known, &result);
  std::ranges::sort(result, {}, &NotRecorded::pid);
  return result;
}

}  // namespace gpumemprof

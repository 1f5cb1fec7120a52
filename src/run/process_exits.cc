#include "run/process_exits.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/steady_clock.h"
#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostWatched = 512;  // as many descriptors
constexpr long kPidfdOpen = 434;      // on every architecture

/// struct pidfd_info of linux/pidfd.h, which headers of older systems lack.
struct PidfdInfo {
  uint64_t mask = 0, cgroup = 0;
  uint32_t ids[11] = {};
  int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kInfoExit = 1u << 3;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

/// Field 52 of /proc/PID/stat, of a process that waits for its parent.
std::optional<int> status_of_zombie(const std::string& proc, int pid, uint64_t start_ticks) {
  const std::string text = read_proc_text(proc + '/' + std::to_string(pid) + "/stat");
  const auto stat = parse_stat(text);
  if (!stat || stat->state != 'Z' || stat->id.start_ticks != start_ticks) return std::nullopt;
  const size_t last = text.find_last_of(' ');
  return last == text.npos ? std::nullopt : std::optional(atoi(text.c_str() + last + 1));
}

}  // namespace

ProcessExits::~ProcessExits() {
  for (const auto& [pid, watched] : watched_) {
    if (watched.descriptor >= 0) close(watched.descriptor);
  }
}

void ProcessExits::watch(const ProcessId& id, int inner_pid) {
  const auto known = watched_.find(id.pid);
  if (known != watched_.end() && known->second.start_ticks == id.start_ticks) return;
  if (known != watched_.end() || watched_.size() >= kMostWatched) return;  // the next look frees it
  const auto descriptor = static_cast<int>(syscall(kPidfdOpen, id.pid, 0));
  if (descriptor < 0) return;
  if (still_lives(proc_, id)) {
    watched_[id.pid] = {id.start_ticks, inner_pid, descriptor};
  } else {  // the PID may be another process's by now
    close(descriptor);
  }
}

std::optional<int> ProcessExits::status_of(int pid, const Watched& watched) const {
  PidfdInfo info{.mask = kInfoExit};
  if (ioctl(watched.descriptor, kGetInfo, &info) == 0 && (info.mask & kInfoExit))
    return info.exit_code;
  return status_of_zombie(proc_, pid, watched.start_ticks);
}

void ProcessExits::look() {
  std::erase_if(watched_, [&](const auto& entry) {
    const auto& [pid, watched] = entry;
    pollfd wait{watched.descriptor, POLLIN, 0};
    if (poll(&wait, 1, 0) != 1) return false;
    auto status = status_of(pid, watched);
    // Its parent may not have asked yet, and will.
    const bool is_waiting = !status && still_lives(proc_, {pid, watched.start_ticks});
    if (is_waiting) return false;
    if (!status) status = status_of(pid, watched);  // it asked between our two questions
    if (status && ended_.size() < kMost)  // a fork storm must not fill our memory
      ended_.push_back({watched.inner_pid, watched.start_ticks, *status, steady_now_ns()});
    close(watched.descriptor);
    return true;
  });
}

}  // namespace gpumemprof

#include "devices/oom_kills.h"

#include "devices/host_memory.h"
#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

/// "oom_kill 3" on a line of its own.
std::optional<uint64_t> counter(const std::string& text) {
  const std::string key = "oom_kill ";
  size_t at = text.starts_with(key) ? 0 : text.find('\n' + key);
  if (at == text.npos) return std::nullopt;
  at += at == 0 && text.starts_with(key) ? key.size() : key.size() + 1;
  return whole_number(text.substr(at, text.find('\n', at) - at));
}

}  // namespace

OomKills::OomKills(std::string root) : root_(std::move(root)) {
  const std::string cgroups = read_proc_text(root_ + "/proc/self/cgroup");
  const std::string mount = root_ + "/sys/fs/cgroup";
  for (const std::string& file :
       {mount + own_cgroup(cgroups, "") + "/memory.events",
        mount + "/memory" + own_cgroup(cgroups, "memory") + "/memory.oom_control"}) {
    if (!counter(read_proc_text(file))) continue;
    cgroup_file_ = file;
    break;
  }
  seen_ = all();
}

std::optional<uint64_t> OomKills::all() const {
  if (!cgroup_file_.empty()) return counter(read_proc_text(cgroup_file_));
  return counter(read_proc_text(root_ + "/proc/vmstat"));
}

uint64_t OomKills::new_kills() {
  const auto now = all();
  const uint64_t more = now && seen_ && *now > *seen_ ? *now - *seen_ : 0;
  seen_ = now;
  return more;
}

}  // namespace gpumemprof

#include "devices/oom_kills.h"

#include "devices/host_memory.h"
#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

std::optional<uint64_t> counter(const std::string& text) { return line_number(text, "oom_kill"); }

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
  machine_before_ = of_machine();
}

std::optional<uint64_t> OomKills::of_machine() const {
  return counter(read_proc_text(root_ + "/proc/vmstat"));
}

uint64_t OomKills::kills_of_machine() const {
  const auto now = of_machine();
  return now && machine_before_ && *now > *machine_before_ ? *now - *machine_before_ : 0;
}

std::optional<uint64_t> OomKills::all() const {
  if (!cgroup_file_.empty()) return counter(read_proc_text(cgroup_file_));
  return of_machine();
}

uint64_t OomKills::new_kills() {
  const auto now = all();
  const uint64_t more = now && seen_ && *now > *seen_ ? *now - *seen_ : 0;
  seen_ = now;
  return more;
}

}  // namespace gpumemprof

#include "live/live_recordings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

/// The value of a variable in a process's first environment; empty where it has none.
std::string variable(const std::string& environment, const std::string& name) {
  const std::string wanted = name + '=';
  for (size_t at = 0; at < environment.size();) {
    const size_t end = std::min(environment.find('\0', at), environment.size());
    if (environment.compare(at, wanted.size(), wanted) == 0)
      return environment.substr(at + wanted.size(), end - at - wanted.size());
    at = end + 1;
  }
  return "";
}

/// The .gmp file that the process has mapped: whoever records maps its own.
std::string mapped_recording(const std::string& folder) {
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!line.ends_with(".gmp")) continue;
    const size_t slash = line.find('/');
    if (slash != line.npos) return line.substr(slash);
  }
  return "";
}

bool is_ours(const std::string& folder) {
  struct stat st;
  return stat(folder.c_str(), &st) == 0 && (st.st_uid == geteuid() || geteuid() == 0);
}

}  // namespace

LiveRecording find_live_recording(const std::string& proc, const ProcessId& id) {
  const std::string folder = proc + '/' + std::to_string(id.pid);
  LiveRecording found{id, command_line(proc, id.pid), "", ""};
  // A forked child inherits its parent's map until its own first event makes a file of its own.
  const std::string file = mapped_recording(folder);
  const std::string name = '.' + std::to_string(innermost_pid(proc, id.pid)) + '.';
  if (!file.empty() && file.find(name, file.rfind('/')) != file.npos) {
    found.file = file;
    found.folder = file.substr(0, file.rfind('/'));
    return found;
  }
  const std::string environment = read_proc_text(folder + "/environ");
  if (!variable(environment, "LD_PRELOAD").empty())
    found.folder = variable(environment, "GPUMEMPROF_DIR");
  return found;
}

std::vector<LiveRecording> list_live_recordings(const std::string& proc) {
  std::vector<LiveRecording> out;
  for (const ProcessStat& stat : list_processes(proc)) {
    if (stat.state == 'Z' || stat.state == 'X' || stat.id.pid == getpid()) continue;
    if (!is_ours(proc + '/' + std::to_string(stat.id.pid))) continue;
    // Without an event a process of `run` may be anything, a shell for instance: those that hold no
    // recording of their own are of no use to anybody who looks for memory.
    LiveRecording found = find_live_recording(proc, stat.id);
    if (!found.file.empty()) out.push_back(std::move(found));
  }
  std::ranges::sort(out, {}, [](const LiveRecording& r) { return r.id.pid; });
  return out;
}

}  // namespace gpumemprof

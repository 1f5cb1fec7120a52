#include "live/live_recordings.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>

#include "devices/proc_text.h"
#include "recording/arena.h"
#include "run/folder.h"

namespace gpumemprof {
namespace {

/// The value of a variable in a process's initial environment; empty if not set.
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

struct Mapped {
  std::string file;       ///< a .gmp file: whoever records without an arena maps its own
  bool in_arena = false;  ///< what changes in its file is there instead
};

Mapped mapped_recording(const std::string& folder) {
  Mapped mapped;
  std::ifstream maps(folder + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(format::kArenaLink) != line.npos) mapped.in_arena = true;
    if (!line.ends_with(".gmp")) continue;
    const size_t slash = line.find('/');
    if (slash != line.npos) return mapped.file = line.substr(slash), mapped;
  }
  return mapped;
}

/// HOST.PID.START[.N].gmp in a folder, the one with the highest N: the process has become another
/// program N times. `root` is prepended to the folder's name as the process sees it.
std::string file_of(const std::string& root, const std::string& folder, int pid, uint64_t start) {
  const std::string middle = '.' + std::to_string(pid) + '.' + std::to_string(start) + '.';
  std::string found;
  uint64_t most = 0;
  for (const std::string& name : recorded_files(root + folder)) {
    const size_t at = name.rfind(middle);
    if (at == name.npos) continue;
    uint64_t n = 0;
    const char* rest = name.data() + at + middle.size();
    std::from_chars(rest, name.data() + name.size(), n);
    if (found.empty() || n > most) found = folder + '/' + name, most = n;
  }
  return found;
}

bool is_ours(const std::string& folder) {
  struct stat st;
  return stat(folder.c_str(), &st) == 0 && (st.st_uid == geteuid() || geteuid() == 0);
}

}  // namespace

LiveRecording find_live_recording(const std::string& proc, const ProcessId& id) {
  const std::string folder = proc + '/' + std::to_string(id.pid);
  LiveRecording found{id, command_line(proc, id.pid), "", ""};
  // A forked child has its parent's mapping until its first event creates its own file.
  const Mapped mapped = mapped_recording(folder);
  const int pid = innermost_pid(proc, id.pid);
  const std::string name = '.' + std::to_string(pid) + '.';
  if (mapped.file.find(name, mapped.file.rfind('/') + 1) != mapped.file.npos) {
    found.file = mapped.file;
    found.folder = found.file.substr(0, found.file.rfind('/'));
    return found;
  }
  const std::string environment = read_proc_text(folder + "/environ");
  if (variable(environment, "LD_PRELOAD").empty()) return found;
  found.folder = variable(environment, "GPUMEMPROF_DIR");
  if (!mapped.in_arena || found.folder.empty()) return found;
  found.file = file_of(folder + "/root", found.folder, pid, id.start_ticks);
  if (found.file.empty()) found.file = file_of("", found.folder, pid, id.start_ticks);
  return found;
}

std::vector<LiveRecording> list_live_recordings(const std::string& proc,
                                                std::vector<LiveRecording>* waiting) {
  struct Silent {
    LiveRecording recording;
    int parent;
  };
  std::vector<LiveRecording> out;
  std::vector<Silent> silent;
  for (const ProcessStat& stat : list_processes(proc)) {
    if (stat.state == 'Z' || stat.state == 'X' || stat.id.pid == getpid()) continue;
    if (!is_ours(proc + '/' + std::to_string(stat.id.pid))) continue;
    // Without an event a process of `run` may be anything, such as a shell.
    LiveRecording found = find_live_recording(proc, stat.id);
    if (!found.file.empty())
      out.push_back(std::move(found));
    else if (!found.folder.empty())
      silent.push_back({std::move(found), stat.parent});
  }
  for (const Silent& one : silent) {
    const auto is_of_folder = [&](const LiveRecording& other) {
      return other.folder == one.recording.folder;
    };
    const bool is_first = std::ranges::none_of(silent, [&](const Silent& other) {
      return other.recording.id.pid == one.parent && is_of_folder(other.recording);
    });
    if (waiting && is_first && std::ranges::none_of(out, is_of_folder))
      waiting->push_back(one.recording);
  }
  if (waiting) std::ranges::sort(*waiting, {}, [](const LiveRecording& r) { return r.id.pid; });
  std::ranges::sort(out, {}, [](const LiveRecording& r) { return r.id.pid; });
  return out;
}

}  // namespace gpumemprof

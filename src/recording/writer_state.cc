#include "recording/writer_state.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/folder.h"
#include "recording/chunk_scan.h"
#include "recording/recording_file.h"
#include "recording/seal.h"

namespace gpumemprof {
namespace {

/// Files of /proc say that they are empty, so they are read to their end.
std::string read_proc(const std::string& path) {
  auto file = open_file(path, FileMode::kRead);
  if (!file) return {};
  std::string text(4096, '\0');
  auto got = (*file)->read_at(0, text.data(), text.size());
  text.resize(got ? *got : 0);
  return text;
}

template <size_t N>
std::string_view text_of(const char (&field)[N]) {
  return {field, strnlen(field, N)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

/// Field 3 and 22 of /proc/PID/stat. "pid (name) state ppid …": the name may hold anything, so
/// fields are counted from the last ')'.
struct Stat {
  char state;
  uint64_t start_ticks;
};
std::optional<Stat> parse_stat(const std::string& stat) {
  size_t at = stat.rfind(')');
  if (at == stat.npos || at + 2 >= stat.size()) return std::nullopt;
  Stat result{stat[at + 2], 0};
  uint64_t field = 2;
  std::string_view rest = std::string_view(stat).substr(at + 1);
  while (field < 22 && !rest.empty()) {
    rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
    ++field;
    if (rest.find(' ') == rest.npos) break;
  }
  for (char c : rest) {
    if (c < '0' || c > '9') break;
    result.start_ticks = result.start_ticks * 10 + static_cast<uint64_t>(c - '0');
  }
  return result;
}

/// 0 where it cannot be told.
uint64_t namespace_of(const std::string& process, const char* kind) {
  struct stat st;
  return stat((process + "/ns/" + kind).c_str(), &st) == 0 ? st.st_ino : 0;
}

/// /proc shows when a process started by the clock of who reads it: in another time namespace the
/// process noted another number.
bool has_our_clock(const std::string& process) {
  const uint64_t theirs = namespace_of(process, "time");
  return theirs == 0 || theirs == namespace_of("/proc/self", "time");
}

/// Of "NSpid:\t812\t2" the 2; 0 for a process of this namespace.
uint32_t inner_pid(const std::string& process) {
  const std::string status = read_proc(process + "/status");
  const size_t line = status.find("\nNSpid:");
  if (line == status.npos) return 0;
  const std::string_view numbers =
      std::string_view(status).substr(line + 8, status.find('\n', line + 1) - line - 8);
  const size_t last = numbers.rfind('\t');
  if (last == 0 || last == numbers.npos) return 0;
  uint32_t pid = 0;
  std::from_chars(numbers.data() + last + 1, numbers.data() + numbers.size(), pid);
  return pid;
}

}  // namespace

uint64_t start_ticks_of(uint32_t pid) {
  const auto stat = parse_stat(read_proc("/proc/" + std::to_string(pid) + "/stat"));
  return stat ? stat->start_ticks : 0;
}

ProcessHere process_here(uint32_t pid, uint64_t start_ticks, uint64_t pid_namespace) {
  const ProcessHere same{pid, start_ticks_of(pid)};
  const bool is_ours = pid_namespace != 0 && pid_namespace == namespace_of("/proc/self", "pid");
  const bool is_same = is_ours || start_ticks == 0 || same.start_ticks == start_ticks ||
                       !has_our_clock("/proc/" + std::to_string(pid));
  if (is_same) return same;
  ProcessHere found;
  each_name("/proc", [&](std::string_view name) {
    uint32_t number = 0;
    if (found.pid != 0 || std::from_chars(name.data(), name.data() + name.size(), number).ptr !=
                              name.data() + name.size())
      return;
    const std::string folder = "/proc/" + std::string(name);
    const uint64_t start = start_ticks_of(number);
    const bool may_be_it = start == start_ticks || !has_our_clock(folder);
    if (may_be_it && inner_pid(folder) == pid) found = {number, start};
  });
  return found;
}

bool is_running(uint32_t pid, uint64_t start_ticks) {
  const std::string folder = "/proc/" + std::to_string(pid);
  const std::string text = read_proc(folder + "/stat");
  if (text.empty()) return access(folder.c_str(), F_OK) == 0 || errno != ENOENT;
  const auto stat = parse_stat(text);
  if (!stat) return false;
  if (start_ticks != 0 && stat->start_ticks != start_ticks && has_our_clock(folder)) return false;
  // A leader that has ended stays a zombie for as long as other threads of the process run.
  return !(stat->state == 'Z' || stat->state == 'X') || entry_count(folder + "/task") > 1;
}

WriterState writer_state(const format::FileHeader& header, const format::FileState& state) {
  // Another boot may be an earlier one of this machine or another machine with the same name: not
  // told apart.
  const std::string boot = read_proc("/proc/sys/kernel/random/boot_id");
  if (boot.empty() || trimmed(boot) != text_of(header.boot_id)) return WriterState::kElsewhere;
  const uint64_t own_namespace = namespace_of("/proc/self", "pid");
  if (state.pid_namespace != 0 && state.pid_namespace != own_namespace) {
    const ProcessHere here = process_here(header.pid, header.start_ticks);
    const uint64_t its = namespace_of("/proc/" + std::to_string(here.pid), "pid");
    if (here.is_running() && (its == 0 || its == state.pid_namespace)) return WriterState::kAlive;
    // Containers share the kernel and so the boot. Who sees all processes knows that it is none.
    constexpr uint64_t kInitial = 0xEFFFFFFC;  // PROC_PID_INIT_INO
    return own_namespace == kInitial && geteuid() == 0 ? WriterState::kGone
                                                       : WriterState::kElsewhere;
  }
  return is_running(header.pid, header.start_ticks) ? WriterState::kAlive : WriterState::kGone;
}

bool writer_is_alive(const std::string& gmp_path) {
  auto file = RecordingFile::open(gmp_path, FileMode::kRead);
  if (!file) return false;
  auto header = read_file_header(**file);
  return header && writer_state(*header, read_file_state(**file)) == WriterState::kAlive;
}

}  // namespace gpumemprof

#include "recording/writer_state.h"

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/file.h"
#include "recording/chunk_scan.h"
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

size_t thread_count(uint32_t pid) {
  DIR* dir = opendir(("/proc/" + std::to_string(pid) + "/task").c_str());
  if (!dir) return 0;
  size_t n = 0;
  while (const dirent* entry = readdir(dir)) n += entry->d_name[0] != '.';
  closedir(dir);
  return n;
}

bool is_running(uint32_t pid, uint64_t start_ticks) {
  std::string stat = read_proc("/proc/" + std::to_string(pid) + "/stat");
  // "pid (name) state ppid …": the name may hold anything, so fields are counted from the last ')'.
  size_t at = stat.rfind(')');
  if (at == stat.npos || at + 2 >= stat.size()) return false;
  const char state = stat[at + 2];
  uint64_t field = 2;
  std::string_view rest = std::string_view(stat).substr(at + 1);
  while (field < 22 && !rest.empty()) {
    rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
    ++field;
    if (rest.find(' ') == rest.npos) break;
  }
  uint64_t started = 0;
  for (char c : rest) {
    if (c < '0' || c > '9') break;
    started = started * 10 + static_cast<uint64_t>(c - '0');
  }
  if (started != start_ticks) return false;
  // A leader that has ended stays a zombie for as long as other threads of the process run.
  return !(state == 'Z' || state == 'X') || thread_count(pid) > 1;
}

}  // namespace

WriterState writer_state(const format::FileHeader& header) {
  const std::string boot = read_proc("/proc/sys/kernel/random/boot_id");
  if (trimmed(boot) == text_of(header.boot_id)) {
    return is_running(header.pid, header.start_ticks) ? WriterState::kAlive : WriterState::kGone;
  }
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return std::string_view(name).starts_with(text_of(header.host)) ? WriterState::kGone
                                                                  : WriterState::kElsewhere;
}

bool writer_is_alive(const std::string& gmp_path) {
  auto file = open_file(gmp_path, FileMode::kRead);
  if (!file) return false;
  auto header = read_file_header(**file);
  return header && writer_state(*header) == WriterState::kAlive;
}

}  // namespace gpumemprof

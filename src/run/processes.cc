#include "run/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "base/folder.h"
#include "run/preload.h"

namespace gpumemprof {
namespace {

constexpr size_t kMaxSmallFileBytes = 16 << 10;
constexpr size_t kMaxMapsBytes = 64u << 20;
constexpr size_t kMaxCommandBytes = 1024;
constexpr size_t kMaxEnvironmentBytes = 4u << 20;

/// Hands out a file's bytes piece by piece; false where it cannot be opened.
template <class OnPiece>
bool read_pieces(const std::string& path, size_t limit, OnPiece on_piece) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char buffer[16 << 10];
  for (size_t total = 0; total < limit;) {
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n <= 0) break;
    total += static_cast<size_t>(n);
    on_piece(std::string_view(buffer, static_cast<size_t>(n)));
  }
  close(fd);
  return true;
}

std::string read_small(const std::string& path) {
  std::string text;
  read_pieces(path, kMaxSmallFileBytes, [&](std::string_view piece) { text += piece; });
  return text;
}

template <class Number>
bool number(std::string_view word, Number* out) {
  return std::from_chars(word.data(), word.data() + word.size(), *out).ec == std::errc{};
}

std::string in_proc(const std::string& proc, int pid, const char* name) {
  return proc + '/' + std::to_string(pid) + '/' + name;
}

bool is_torch_library(std::string_view path) {
  std::string_view file = path.substr(path.rfind('/') + 1);
  if (file.starts_with("libtorch") || file.starts_with("libc10"))
    return file.find(".so") != file.npos;
  // A build with everything inside its Python module has no library of its own.
  return file.starts_with("_C.") && path.ends_with(".so") && path.find("/torch/") != path.npos;
}

bool is_library_of_other_framework(std::string_view path) {
  std::string_view file = path.substr(path.rfind('/') + 1);
  return (file.starts_with("libtensorflow_") || file.starts_with("libjax_common")) &&
         file.find(".so") != file.npos;
}

/// CUDA, HIP and Level Zero: drivers and run times, and what of the frameworks is linked to them.
bool is_gpu_library(std::string_view path) {
  static constexpr std::string_view kNames[] = {
      "libcuda.so",  "libcudart",        "libnvidia-ml.so", "libc10_cuda",  "libtorch_cuda",
      "libamdhip64", "libhsa-runtime64", "libc10_hip",      "libtorch_hip", "libze_loader",
      "libc10_xpu",  "xla_cuda_plugin",  "xla_rocm_plugin"};
  const std::string_view file = path.substr(path.rfind('/') + 1);
  return std::ranges::any_of(kNames, [&](std::string_view name) { return file.starts_with(name); });
}

/// The rest of the line that begins with `name`.
std::string_view line_of(std::string_view text, std::string_view name) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (line.starts_with(name)) return line.substr(name.size());
    begin = end + 1;
  }
  return {};
}

/// The n-th word of a line, counted from 0, as a number.
bool nth_number(std::string_view line, int n, uint64_t* out) {
  for (;; --n) {
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == line.npos) return false;
    line.remove_prefix(begin);
    if (n == 0) return number(line, out);
    line.remove_prefix(std::min(line.find_first_of(" \t"), line.size()));
  }
}

}  // namespace

std::optional<ProcessStat> parse_stat(std::string_view text) {
  ProcessStat stat;
  size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || !number(text, &stat.id.pid)) return std::nullopt;
  std::string_view rest = text.substr(name_end + 1);
  // Fields are counted from 1 in proc(5); the state is field 3.
  int field = 2;
  while (!rest.empty() && field < 23) {
    size_t begin = rest.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    rest.remove_prefix(begin);
    std::string_view word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(word.size());
    ++field;
    bool ok = true;
    if (field == 3) stat.state = word[0];
    if (field == 4) ok = number(word, &stat.parent);
    if (field == 22) ok = number(word, &stat.id.start_ticks);
    if (field == 23) ok = number(word, &stat.virtual_bytes);
    if (!ok) return std::nullopt;
  }
  if (field < 23) return std::nullopt;
  return stat;
}

std::vector<ProcessStat> list_processes(const std::string& proc) {
  std::vector<ProcessStat> result;
  each_name(proc, [&](std::string_view name) {
    int pid = 0;
    if (!number(name, &pid)) return;
    if (auto stat = parse_stat(read_small(in_proc(proc, pid, "stat")))) result.push_back(*stat);
  });
  return result;
}

bool still_lives(const std::string& proc, const ProcessId& id) {
  const auto now = parse_stat(read_small(in_proc(proc, id.pid, "stat")));
  return now && now->id == id && now->state != 'Z' && now->state != 'X' && now->virtual_bytes != 0;
}

void note_mapping(std::string_view line, Mappings* mappings) {
  size_t slash = line.find('/');
  if (slash == std::string_view::npos) return;
  std::string_view path = line.substr(slash);
  if (path.ends_with(" (deleted)")) path.remove_suffix(10);
  if (path.ends_with(kProbeLibrary)) mappings->probe = true;
  if (is_library_of_other_framework(path)) mappings->other_framework = true;
  if (is_torch_library(path) || mappings->other_framework) mappings->torch = true;
  if (path.ends_with("/libc10.so")) mappings->c10 = path;
  if (is_gpu_library(path)) mappings->gpu = true;
}

Mappings read_mappings(const std::string& proc, int pid) {
  Mappings mappings;
  std::string line;
  bool any = false;
  bool opened = read_pieces(in_proc(proc, pid, "maps"), kMaxMapsBytes, [&](std::string_view piece) {
    any = true;
    while (!piece.empty()) {
      size_t end = piece.find('\n');
      line += piece.substr(0, end);
      if (end == std::string_view::npos) break;
      note_mapping(line, &mappings);
      line.clear();
      piece.remove_prefix(end + 1);
    }
  });
  mappings.readable = opened && any;  // a zombie's file opens and is empty
  return mappings;
}

bool has_gpu_open(const std::string& proc, int pid) {
  const std::string folder = in_proc(proc, pid, "fd");
  DIR* dir = opendir(folder.c_str());
  if (!dir) return false;
  bool found = false;
  constexpr int kMostLooked = 4096;
  for (int looked = 0; !found && looked < kMostLooked; ++looked) {
    const dirent* entry = readdir(dir);
    if (!entry) break;
    char target[64];
    const ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target);
    const std::string_view path(target, n > 0 ? static_cast<size_t>(n) : 0);
    found = path.starts_with("/dev/nvidia") || path == "/dev/kfd" ||
            path.starts_with("/dev/dri/render");
  }
  closedir(dir);
  return found;
}

std::string command_line(const std::string& proc, int pid) {
  std::string text = read_small(in_proc(proc, pid, "cmdline"));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  if (text.size() > kMaxCommandBytes) text.resize(kMaxCommandBytes);
  return text;
}

bool has_in_environment(const std::string& proc, int pid, const std::string& entry) {
  std::string text(1, '\0');
  read_pieces(in_proc(proc, pid, "environ"), kMaxEnvironmentBytes,
              [&](std::string_view piece) { text += piece; });
  return text.find('\0' + entry + '\0') != text.npos;
}

int innermost_pid(const std::string& proc, int pid) {
  std::string text = read_small(in_proc(proc, pid, "status"));
  size_t begin = text.find("\nNSpid:");
  if (begin == std::string::npos) return pid;
  std::string_view line = std::string_view(text).substr(begin + 1);
  line = line.substr(0, line.find('\n'));
  int inner = pid;
  if (size_t last = line.find_last_of("\t "); last != line.npos)
    number(line.substr(last + 1), &inner);
  return inner;
}

std::string why_it_cannot_record(const std::string& proc, int pid, const std::string& folder) {
  struct stat st;
  uint64_t user = 0, limit = 0;
  if (stat(folder.c_str(), &st) != 0) return "the recording's folder was deleted";
  const std::string status = read_small(in_proc(proc, pid, "status"));
  if (nth_number(line_of(status, "Uid:"), 1, &user) && user != 0 && user != st.st_uid &&
      (st.st_mode & (S_IWOTH | S_IXOTH)) != (S_IWOTH | S_IXOTH)) {
    return "it runs as user " + std::to_string(user) +
           ", who may not write to the recording's folder";
  }
  struct stat there;
  if (stat((in_proc(proc, pid, "root") + folder).c_str(), &there) != 0 && errno == ENOENT &&
      stat(in_proc(proc, pid, "root").c_str(), &there) == 0) {
    return "it cannot see the recording's folder: it has another root or other mounts";
  }
  const std::string limits = read_small(in_proc(proc, pid, "limits"));
  if (nth_number(line_of(limits, "Max file size"), 0, &limit) && limit < 4096) {
    return "its file size limit is " + std::to_string(limit) + " bytes";
  }
  if (nth_number(line_of(limits, "Max open files"), 0, &limit) &&
      entry_count(in_proc(proc, pid, "fd")) >= limit) {
    return "its descriptor limit is reached";
  }
  return "";
}

}  // namespace gpumemprof

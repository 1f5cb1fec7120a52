#include "native/resident.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace gpumemprof::python {
namespace {

constexpr size_t kTextSize = 4096;
using Text = char[kTextSize];

/// The start of a file as a string; empty where it cannot be read.
void read_text(int fd, Text& text) {
  const ssize_t size = fd < 0 ? 0 : pread(fd, text, kTextSize - 1, 0);
  text[size > 0 ? size : 0] = 0;
}
int open_file(const char* path) { return open(path, O_RDONLY | O_CLOEXEC); }

/// /proc/self/statm, which stays open while blocks are.
class Statm {
 public:
  void read(Text& text) {
    if (!is_own()) renew();
    read_text(fd_, text);
    if (blocks_ == 0) drop();
  }
  void count(int blocks) { blocks_ = std::max(0, blocks_ + blocks); }

 private:
  bool is_same_file() const {
    struct stat now;
    return fstat(fd_, &now) == 0 && now.st_dev == file_.st_dev && now.st_ino == file_.st_ino;
  }
  bool is_own() const { return fd_ >= 0 && process_ == getpid() && is_same_file(); }
  void drop() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void renew() {
    if (fd_ >= 0 && is_same_file()) close(fd_);  // a parent's; what is no longer ours is let be
    fd_ = open_file("/proc/self/statm");
    process_ = getpid();
    if (fd_ >= 0 && fstat(fd_, &file_) != 0) drop();
  }

  int fd_ = -1;
  pid_t process_ = 0;
  struct stat file_ {};
  int blocks_ = 0;
};

/// A line "Name:   123 kB" of /proc/self/status, in bytes.
uint64_t status_bytes(const char* text, const char* name) {
  const char* line = strstr(text, name);
  return line ? strtoull(line + strlen(name), nullptr, 10) * 1024 : 0;
}

ProcessBytes from_status() {
  Text text;
  const int fd = open_file("/proc/self/status");
  read_text(fd, text);
  if (fd >= 0) close(fd);
  return {status_bytes(text, "VmRSS:"), status_bytes(text, "VmHWM:"),
          status_bytes(text, "VmSize:"), 0};
}

ProcessBytes from_statm(Statm& file) {
  static const uint64_t page_bytes = sysconf(_SC_PAGESIZE);
  Text text;
  file.read(text);
  char* end = text;
  const uint64_t all = strtoull(text, &end, 10);
  const uint64_t resident = strtoull(end, nullptr, 10);
  return {resident * page_bytes, 0, all * page_bytes, 0};
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

/// `used`: what getrusage says.
ProcessBytes bytes_now(const rusage& used, int blocks) {
  // Through exec a process inherits the high-water mark of the program that it was before, and
  // getrusage goes on to say that one until it is passed. The other file is right and slower.
  static uint64_t inherited = 0;  // 0: not known yet
  static Statm statm;
  statm.count(blocks);
  const uint64_t highest = static_cast<uint64_t>(used.ru_maxrss) * 1024;
  if (inherited != 0 && highest > inherited) {
    inherited = 1;
    ProcessBytes now = from_statm(statm);
    now.highest = highest;
    return now;
  }
  const ProcessBytes right = from_status();
  if (inherited == 0) {
    const bool is_own = highest <= right.highest + (1 << 20);
    inherited = is_own ? 1 : highest;
  }
  return right;
}

}  // namespace

ProcessBytes process_bytes(int blocks) {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  ProcessBytes now = bytes_now(used, blocks);
  now.cpu_seconds = seconds(used.ru_utime) + seconds(used.ru_stime);
  return now;
}

}  // namespace gpumemprof::python

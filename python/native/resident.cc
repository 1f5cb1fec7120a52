#include "native/resident.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace gpumemprof::python {
namespace {

constexpr size_t kTextSize = 4096;

/// The start of a file as a string; empty where it cannot be read.
void read_text(const char* path, char (&text)[kTextSize]) {
  text[0] = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t size = read(fd, text, kTextSize - 1);
  close(fd);
  text[size > 0 ? size : 0] = 0;
}

/// A line "Name:   123 kB" of /proc/self/status, in bytes.
uint64_t status_bytes(const char* text, const char* name) {
  const char* line = strstr(text, name);
  return line ? strtoull(line + strlen(name), nullptr, 10) * 1024 : 0;
}

ProcessBytes from_status() {
  char text[kTextSize];
  read_text("/proc/self/status", text);
  return {status_bytes(text, "VmRSS:"), status_bytes(text, "VmHWM:"),
          status_bytes(text, "VmSize:")};
}

/// What getrusage says that the process has had at most.
uint64_t highest_bytes() {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<uint64_t>(usage.ru_maxrss) * 1024 : 0;
}

ProcessBytes from_statm() {
  static const uint64_t page_bytes = sysconf(_SC_PAGESIZE);
  char text[kTextSize];
  read_text("/proc/self/statm", text);
  char* end = text;
  const uint64_t all = strtoull(text, &end, 10);
  const uint64_t resident = strtoull(end, nullptr, 10);
  return {resident * page_bytes, highest_bytes(), all * page_bytes};
}

}  // namespace

ProcessBytes process_bytes() {
  // Through exec a process inherits the high-water mark of the program that it was before, and
  // getrusage goes on to say that one until it is passed. The other file is right and slower.
  static std::atomic<uint64_t> inherited = 0;  // 0: not known yet
  static std::atomic<bool> is_passed = false;
  if (is_passed) return from_statm();
  const uint64_t highest = highest_bytes();
  if (inherited != 0 && highest > inherited) {
    is_passed = true;
    return from_statm();
  }
  const ProcessBytes right = from_status();
  if (inherited == 0) {
    const bool is_own = highest <= right.highest + (1 << 20);
    inherited = is_own ? 1 : highest;
  }
  return right;
}

}  // namespace gpumemprof::python

#include "native/resident.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
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
  unsigned long long kilobytes = 0;
  return line && sscanf(line + strlen(name), "%llu", &kilobytes) == 1 ? kilobytes * 1024 : 0;
}

ProcessBytes from_status() {
  char text[kTextSize];
  read_text("/proc/self/status", text);
  return {status_bytes(text, "VmRSS:"), status_bytes(text, "VmHWM:"),
          status_bytes(text, "VmSize:")};
}

ProcessBytes from_statm() {
  static const uint64_t page_bytes = sysconf(_SC_PAGESIZE);
  char text[kTextSize];
  read_text("/proc/self/statm", text);
  unsigned long long all = 0, resident = 0;
  if (sscanf(text, "%llu %llu", &all, &resident) != 2) all = resident = 0;
  struct rusage usage;
  const bool known = getrusage(RUSAGE_SELF, &usage) == 0;
  return {resident * page_bytes, known ? static_cast<uint64_t>(usage.ru_maxrss) * 1024 : 0,
          all * page_bytes};
}

}  // namespace

ProcessBytes process_bytes() {
  // Through exec a process inherits the high-water mark of the program that it was before, and
  // getrusage goes on to say that one until it is passed. The other file is right and slower.
  static std::atomic<uint64_t> inherited = 0;  // 0: not known yet
  const ProcessBytes quick = from_statm();
  if (inherited != 0 && quick.highest > inherited) return quick;
  const ProcessBytes right = from_status();
  if (inherited == 0) {
    const bool is_own = quick.highest <= right.highest + (1 << 20);
    inherited = is_own ? 1 : quick.highest;
  }
  return right;
}

}  // namespace gpumemprof::python

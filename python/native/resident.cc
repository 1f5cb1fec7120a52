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

std::pair<uint64_t, uint64_t> from_status() {
  char text[kTextSize];
  read_text("/proc/self/status", text);
  return {status_bytes(text, "VmRSS:"), status_bytes(text, "VmHWM:")};
}

std::pair<uint64_t, uint64_t> from_statm() {
  static const uint64_t page_bytes = sysconf(_SC_PAGESIZE);
  char text[kTextSize];
  read_text("/proc/self/statm", text);
  unsigned long long pages = 0;
  if (sscanf(text, "%*u %llu", &pages) != 1) pages = 0;
  struct rusage usage;
  const bool known = getrusage(RUSAGE_SELF, &usage) == 0;
  return {pages * page_bytes, known ? static_cast<uint64_t>(usage.ru_maxrss) * 1024 : 0};
}

}  // namespace

std::pair<uint64_t, uint64_t> resident_bytes() {
  // Through exec a process inherits the high-water mark of the program that it was before, and
  // getrusage goes on to say that one until it is passed. The other file is right and slower.
  enum Mark { kUnknown, kInherited, kOwn };
  static std::atomic<int> mark = kUnknown;
  if (mark == kOwn) return from_statm();
  const auto right = from_status();
  const auto quick = from_statm();
  mark = quick.second > right.second + (1 << 20) ? kInherited : kOwn;
  return right;
}

}  // namespace gpumemprof::python

#include "probe/sys.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "probe/hot.h"

namespace gpumemprof::probe {

void* map_private(size_t bytes) {
  long p = sys(SYS_mmap, 0, static_cast<long>(bytes), PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p < 0 && p > -4096 ? nullptr : reinterpret_cast<void*>(p);
}

long read_file(const char* path, char* buffer, size_t size) {
  long fd = sys(SYS_openat, AT_FDCWD, sys_ptr(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return fd;
  size_t used = 0;
  while (used < size) {
    long n = sys(SYS_read, fd, sys_ptr(buffer + used), static_cast<long>(size - used));
    if (n <= 0) break;
    used += static_cast<size_t>(n);
  }
  sys(SYS_close, fd);
  return static_cast<long>(used);
}

bool exceeds_file_limit(uint64_t end) {
  struct rlimit64 limit;
  if (sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, sys_ptr(&limit)) < 0) return false;
  return end > limit.rlim_cur;
}

static uint64_t read_clock(clockid_t id) {
  timespec t;
  if (clock_gettime(id, &t) != 0) return 0;
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

HOT uint64_t monotonic_ns() { return read_clock(CLOCK_MONOTONIC); }
uint64_t realtime_ns() { return read_clock(CLOCK_REALTIME); }

}  // namespace gpumemprof::probe

#include "probe/file_name.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/host_name.h"
#include "format/checksum.h"
#include "probe/sys.h"
#include "probe/text.h"

namespace gpumemprof::probe {
namespace {

void read_boot_id(char* out, size_t size) {
  long n = read_file("/proc/sys/kernel/random/boot_id", out, size - 1);
  if (n < 0) n = 0;
  while (n > 0 && out[n - 1] == '\n') --n;
  out[n] = 0;
}

/// getrandom; where it is refused, the clock and the pid, which differ between our files too.
uint64_t make_id(uint32_t pid) {
  uint64_t id = 0;
  if (sys(SYS_getrandom, sys_ptr(&id), sizeof(id), 1 /* GRND_NONBLOCK */) != sizeof(id) || !id) {
    id = (realtime_ns() ^ uint64_t{pid} << 40) * 0x9e3779b97f4a7c15u | 1;
  }
  return id;
}

}  // namespace

uint64_t read_start_ticks(uint32_t* pid) {
  char stat[1024];
  long n = read_file("/proc/self/stat", stat, sizeof(stat) - 1);
  if (n <= 0) return 0;
  stat[n] = 0;
  if (pid) {
    *pid = 0;
    for (const char* p = stat; *p >= '0' && *p <= '9'; ++p) *pid = *pid * 10 + (*p - '0');
  }
  const char* p = strrchr(stat, ')');  // the command may hold spaces and parentheses
  for (int field = 2; p && field < 22; ++field) {
    p = strchr(p + 1, ' ');
  }
  uint64_t value = 0;
  for (; p && p[1] >= '0' && p[1] <= '9'; ++p) value = value * 10 + (p[1] - '0');
  return value;
}

void read_command(char* out, size_t size) {
  long n = read_file("/proc/self/cmdline", out, size - 1);
  if (n < 0) n = 0;
  while (n > 0 && out[n - 1] == 0) --n;
  out[n] = 0;
  for (long i = 0; i < n; ++i) {
    if (out[i] == 0 || out[i] == '\n') out[i] = ' ';
  }
}

namespace {

/// The number in "pid:[4026531836]"; 0 where there is no such link.
uint64_t namespace_inode(const char* path) {
  char link[64] = {};
  if (sys(SYS_readlinkat, AT_FDCWD, sys_ptr(path), sys_ptr(link), sizeof(link) - 1) < 0) return 0;
  uint64_t inode = 0;
  for (const char* p = link; *p; ++p) {
    if (*p >= '0' && *p <= '9') inode = inode * 10 + static_cast<uint64_t>(*p - '0');
  }
  return inode;
}

}  // namespace

uint64_t pid_namespace() { return namespace_inode("/proc/self/ns/pid"); }
uint64_t time_namespace() { return namespace_inode("/proc/self/ns/time"); }

void seal_header(format::FileHeader* header) { header->crc32c = format::header_crc(*header); }

long create_recording_file(const char* folder, format::FileHeader* header, char* path,
                           size_t path_size) {
  memcpy(header->magic, format::kFileMagic, sizeof(header->magic));
  header->major = format::kMajor;
  header->minor = format::kMinor;
  header->header_bytes = format::kPage;
  header->pid = static_cast<uint32_t>(sys(SYS_getpid));
  header->parent_pid = static_cast<uint32_t>(sys(SYS_getppid));
  header->start_ticks = read_start_ticks(nullptr);
  header->recording_id = make_id(header->pid);
  header->monotonic_ns = monotonic_ns();
  header->realtime_ns = realtime_ns();
  utsname names{};
  if (sys(SYS_uname, sys_ptr(&names)) < 0) names.nodename[0] = 0;
  copy_host_name(names.nodename, header->host, sizeof(header->host));
  read_boot_id(header->boot_id, sizeof(header->boot_id));
  read_command(header->command, sizeof(header->command));
  for (uint64_t n = 0; n < 10000; ++n) {
    Text name(path, path_size);
    name.add(folder), name.add("/"), name.add(header->host), name.add("."), name.add(header->pid);
    name.add("."), name.add(header->start_ticks);
    if (n) name.add("."), name.add(n);
    name.add(".gmp");
    if (!name.ok()) return -ENAMETOOLONG;
    long fd = sys(SYS_openat, AT_FDCWD, sys_ptr(path),
                  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd != -EEXIST) return fd;
  }
  return -EEXIST;
}

}  // namespace gpumemprof::probe

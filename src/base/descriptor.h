// Numbers of file descriptors.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>

namespace gpumemprof {

/// The same open file under a number above the standard streams', closed at exec; `fd` where that
/// cannot be. Of a program that begins with a stream closed the next file gets the stream's number,
/// and loses it when the streams are replaced.
inline int above_standard_streams(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (above < 0) return fd;
  close(fd);
  return above;
}

// How many files this process may have open. Reading a recording of thousands of processes takes
// more than the usual soft limit; what this process starts gets the limit that it had itself.

/// Raises the soft limit to the hard one.
void raise_descriptor_limit();
/// Puts it back, where it was raised: before a program is started. One system call, so also between
/// fork and exec.
void restore_descriptor_limit();
/// The soft limit now.
size_t descriptor_limit();

}  // namespace gpumemprof

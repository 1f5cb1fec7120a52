// Numbers of file descriptors.
#pragma once

#include <fcntl.h>
#include <unistd.h>

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

}  // namespace gpumemprof

#include "telemetry/reader.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error_text.h"

namespace gpumemprof {
namespace {

constexpr int kWaits = 100;
constexpr useconds_t kWaitUs = 10'000;

/// A descriptor that is closed.
struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
};

/// A writer holds the file's lock for as long as it may add to it. One that was just told to stop
/// lets go of it within milliseconds; one that goes on tracking is not waited for any longer.
bool is_written(int fd, int waits) {
  for (int i = 0; i <= waits; ++i) {
    if (flock(fd, LOCK_SH | LOCK_NB) == 0) {
      flock(fd, LOCK_UN);
      return false;
    }
    if (errno != EWOULDBLOCK && errno != EINTR) return false;  // no locks here: nothing to wait for
    if (i < waits) usleep(kWaitUs);
  }
  return true;
}

Result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = pread(fd, buffer, sizeof buffer, static_cast<off_t>(text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(ErrorCode::kSystem, path + ": " + strerror(errno));
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > kMaxTelemetryBytes)
      return fail(ErrorCode::kBadInput, path + ": is larger than 1 GiB: write several files");
  }
}

}  // namespace

Result<Telemetry> read_telemetry(const std::string& path, const TelemetryChoices& choices) {
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat st;
  if (file.fd < 0 || fstat(file.fd, &st) != 0) {
    return fail(unreadable_code(errno), path + ": " + strerror(errno));
  }
  if (!S_ISREG(st.st_mode)) return fail(ErrorCode::kUsage, path + ": is not a file");
  const bool growing = is_written(file.fd, choices.waits ? kWaits : 0);
  Result<Telemetry> out = fail(ErrorCode::kBadInput, "");
  // A record may be written while we read: then its end is torn, and a moment later it is not.
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto text = read_all(file.fd, path);
    if (!text) return std::unexpected(text.error());
    out = parse_telemetry(*text, choices);
    if (out) out->file_bytes = text->size();
    if (!growing || (out && out->losses.empty())) break;
    usleep(kWaitUs);
  }
  if (!out) {
    return std::unexpected(
        Error{out.error().code, path + ": " + out.error().message, out.error().offset});
  }
  if (growing) out->notes.push_back("a tracker is still writing this file");
  return out;
}

}  // namespace gpumemprof

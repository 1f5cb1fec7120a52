#include "telemetry/writer.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace gpumemprof {
namespace {

constexpr const char* kArrayBegin = "[";
constexpr const char* kArrayEnd = "\n]\n";

std::unexpected<Error> failed(const std::string& path) {
  return fail(ErrorCode::kSystem, path + ": cannot write: " + strerror(errno));
}

/// All of it at `offset` (-1: a pipe), or the error in errno.
bool write_all(int fd, std::string_view text, off_t offset) {
  while (!text.empty()) {
    const ssize_t n = offset < 0 ? ::write(fd, text.data(), text.size())
                                 : ::pwrite(fd, text.data(), text.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
    if (offset >= 0) offset += n;
  }
  return true;
}

}  // namespace

std::optional<TelemetryFormat> telemetry_format_of(std::string_view path) {
  if (path.ends_with(".json")) return TelemetryFormat::kJson;
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson")) return TelemetryFormat::kJsonLines;
  if (path.ends_with(".csv")) return TelemetryFormat::kCsv;
  return std::nullopt;
}

Result<TelemetryWriter> TelemetryWriter::create(const std::string& path, TelemetryFormat format) {
  if (path.ends_with(".gmp"))
    return fail(ErrorCode::kUsage, path + ": is the name of a recording; choose another file");
  const int fd = path == "-" ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
                             : open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return failed(path);
  TelemetryWriter writer(fd, path == "-" ? "standard output" : path, format);
  struct stat st;
  writer.is_file_ = path != "-" && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
  if (writer.is_file_) {
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
      return fail(ErrorCode::kUsage, path + ": another tracker is writing it; choose another file");
    if (ftruncate(fd, 0) != 0) return failed(path);
  }
  Status begun;
  if (format == TelemetryFormat::kJson) begun = writer.put(kArrayBegin);
  if (format == TelemetryFormat::kCsv) begun = writer.put(telemetry_csv_header() + '\n');
  if (!begun) return std::unexpected(begun.error());
  return writer;
}

TelemetryWriter::TelemetryWriter(TelemetryWriter&& other) noexcept
    : fd_(other.fd_),
      path_(std::move(other.path_)),
      format_(other.format_),
      is_file_(other.is_file_),
      end_(other.end_),
      tail_(std::move(other.tail_)),
      any_(other.any_) {
  other.fd_ = -1;
}

TelemetryWriter::~TelemetryWriter() { (void)close(); }

Status TelemetryWriter::put(std::string_view text) {
  if (!is_file_) {
    if (!write_all(fd_, text, -1)) return failed(path_);
    return {};
  }
  const std::string tail = format_ == TelemetryFormat::kJson ? kArrayEnd : "";
  const std::string all = std::string(text) + tail;
  if (!write_all(fd_, all, static_cast<off_t>(end_))) {
    const int why = errno;
    // The old end needs no space: its bytes are there already.
    write_all(fd_, tail_, static_cast<off_t>(end_));
    if (ftruncate(fd_, static_cast<off_t>(end_ + tail_.size())) != 0) { /* said below */
    }
    errno = why;
    return failed(path_);
  }
  end_ += text.size(), tail_ = tail;
  return {};
}

Status TelemetryWriter::append(std::span<const TelemetryEvent> events) {
  std::string text;
  bool any = any_;
  for (const TelemetryEvent& event : events) {
    if (format_ == TelemetryFormat::kCsv) {
      text += telemetry_csv(event) + '\n';
    } else if (format_ == TelemetryFormat::kJsonLines) {
      text += telemetry_json(event) + '\n';
    } else {
      text += (any ? ",\n" : "\n") + telemetry_json(event);
    }
    any = true;
  }
  if (auto done = put(text); !done) return done;
  any_ = any;
  return {};
}

Status TelemetryWriter::close() {
  const int fd = fd_;
  if (fd < 0) return {};
  Status done;
  if (!is_file_ && format_ == TelemetryFormat::kJson) done = put(kArrayEnd);
  fd_ = -1;
  if (::close(fd) != 0 && done) done = failed(path_);
  return done;
}

}  // namespace gpumemprof

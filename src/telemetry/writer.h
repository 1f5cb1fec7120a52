// Writes telemetry so that the file is whole at every moment: whenever the writer ends, by whatever
// signal, what was appended so far can be read.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "telemetry/event.h"

namespace gpumemprof {

enum class TelemetryFormat { kJson, kJsonLines, kCsv };

/// By the end of the name: .json, .jsonl or .ndjson, .csv; else empty.
std::optional<TelemetryFormat> telemetry_format_of(std::string_view path);

/// JSON is an array that is closed again with every append: the closing bracket is overwritten by
/// the next record and written behind it, in one call. A power loss or `kill -9` in the middle of
/// that call can cut the last record short; readers say so and take the rest. Not thread-safe.
class TelemetryWriter {
 public:
  /// Makes or empties `path`; "-" is standard output. Holds the file's lock (flock) while it is
  /// open. Errors: kUsage where another writer has the file or it is a recording; kSystem.
  static Result<TelemetryWriter> create(const std::string& path, TelemetryFormat format);
  TelemetryWriter(TelemetryWriter&& other) noexcept;
  TelemetryWriter& operator=(TelemetryWriter&&) = delete;
  ~TelemetryWriter();

  /// All events in one call to the system. After an error (a full disk) the file is as it was
  /// before. Errors: kSystem.
  Status append(std::span<const TelemetryEvent> events);
  /// Must be called for the last errors of the file system to be seen.
  Status close();
  const std::string& path() const { return path_; }

 private:
  TelemetryWriter(int fd, std::string path, TelemetryFormat format)
      : fd_(fd), path_(std::move(path)), format_(format) {}
  Status put(std::string_view text);

  int fd_;
  std::string path_;
  TelemetryFormat format_;
  bool is_file_ = false;  ///< else a pipe or a terminal, where nothing can be overwritten
  uint64_t end_ = 0;      ///< where the next record goes, before the closing bracket
  std::string tail_;      ///< what stands behind end_
  bool any_ = false;
};

}  // namespace gpumemprof

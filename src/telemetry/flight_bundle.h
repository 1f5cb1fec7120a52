// The last events before memory ran out, as a folder: manifest.json, events.json, metadata.json,
// environment.json.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/error.h"
#include "telemetry/event.h"

namespace gpumemprof {

struct FlightBundleOptions {
  std::string folder = "oom_dumps";
  uint64_t buffer_size = 10'000;  ///< events
  uint64_t max_dumps = 5;
  uint64_t max_total_mb = 256;  ///< MiB of all bundles together
};

/// Not thread-safe.
class FlightBundles {
 public:
  explicit FlightBundles(FlightBundleOptions options) : options_(std::move(options)) {}

  /// Keeps the event; beyond the buffer's size the oldest goes.
  void record(const TelemetryEvent& event);
  /// Writes `oom_dump_<time>_<pid>_<backend>_<number>` under another name and renames it, so that a
  /// bundle is whole or not there. Then removes the oldest bundles beyond the limits; the new one
  /// stays, even where it alone is larger. The answer is its path. Errors: kSystem.
  Result<std::string> dump(const std::string& reason, const std::string& message);

 private:
  void retain(const std::string& newest) const;
  FlightBundleOptions options_;
  std::deque<TelemetryEvent> events_;
  uint64_t dumps_ = 0;
};

}  // namespace gpumemprof

// Converts what the probe wrote (raw chunks and staging buffers) into sealed chunks: columns in
// time order, compressed. The `run` parent does it while the program runs; `gpumemprof seal` and
// `analyze` do it later if the parent is gone. The profiled process is not involved and never
// waits.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

struct SealOptions {
  /// Keeps the folder below this by dropping the oldest events (never the live set, peak or
  /// totals). 0: no limit.
  uint64_t max_disk_bytes = 0;
};

struct SealTotals {
  uint64_t files = 0;
  uint64_t events = 0;
  uint64_t bytes_before = 0;
  uint64_t bytes_after = 0;
  /// What the folder takes, after finish(), where that is more than the limit: what cannot be dropped.
  uint64_t above_limit_bytes = 0;
  std::vector<std::string> left;  ///< files that were left as they are, with the reason
};

/// Seals one folder. Not thread-safe. The folder may gain files between calls.
class FolderSealer {
 public:
  FolderSealer(std::string folder, SealOptions options);
  ~FolderSealer();
  /// One pass: seals what has gathered in growing files, and finishes the files whose processes are
  /// gone. Cheap if there is nothing to do; call it a few times a second.
  Status step();
  /// Seals everything. Files of running processes are sealed to their current end and continue to
  /// grow; the folder can be finished again later. `on_progress`: called often, with a share in [0,
  /// 1].
  Status finish(std::function<void(double)> on_progress = {});
  const SealTotals& totals() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// True if the process that writes this file still runs on this machine (same boot, PID and start).
bool writer_is_alive(const std::string& gmp_path);

}  // namespace gpumemprof

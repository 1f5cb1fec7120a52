// The exact counters of a process, read from its recording while that grows.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "trace/live_state.h"

namespace gpumemprof {

/// One device of the process, at the last event that was read.
struct FollowedDevice {
  std::string name;  ///< "cpu", "cuda:0", …
  bool is_cpu = false, is_tensorflow = false;
  int index = -1;
  uint64_t live_bytes = 0, live_count = 0;
  uint64_t peak_bytes = 0;
  uint64_t alloc_count = 0, free_count = 0, alloc_bytes = 0;
  uint64_t unmatched_frees = 0;  ///< of blocks from before the recording, or lost events
  uint64_t oom_count = 0;        ///< requests that were refused
  /// The framework's own totals, where it gives them (CUDA).
  std::optional<uint64_t> framework_allocated_bytes, framework_reserved_bytes;
};

struct FollowedState {
  std::vector<FollowedDevice> devices;
  uint64_t events = 0;
  bool exact = true;  ///< false: `why_inexact` says what is missing
  std::string why_inexact;
};

/// Decodes each sealed chunk once and what is not sealed yet anew with every look; so a look costs
/// what happened since the last sealing, and the checksums of the whole file. The recorded process
/// takes no part. Not thread-safe.
class RecordingFollower {
 public:
  /// Errors: those of open_recording for one file.
  static Result<RecordingFollower> open(const std::string& gmp_path);
  RecordingFollower(RecordingFollower&&) noexcept;
  RecordingFollower& operator=(RecordingFollower&&) noexcept;
  ~RecordingFollower();

  /// What holds now. Where looking took long, the next looks answer the same for ten times as long,
  /// so that following never takes more than a tenth of a core. Errors: kSystem.
  Result<FollowedState> look();

 private:
  struct Impl;
  explicit RecordingFollower(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpumemprof

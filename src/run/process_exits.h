// How processes end that are not our children: ranks of a launcher, whose exit code only it is told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "run/processes.h"

namespace gpumemprof {

struct ProcessExitStatus {
  int pid = 0;  ///< as the process itself saw it
  uint64_t start_ticks = 0;
  int wait_status = 0;  ///< as waitpid gives it
  int64_t time_ns = 0;  ///< CLOCK_MONOTONIC of the look that saw it ended
};

/// Holds a descriptor for each watched process until it ends. The kernel tells its status from 6.15
/// on, also after its parent was; before, while it waits for its parent to ask. What is not seen is
/// left out. Not thread-safe.
class ProcessExits {
 public:
  explicit ProcessExits(std::string proc) : proc_(std::move(proc)) {}
  ~ProcessExits();
  ProcessExits(const ProcessExits&) = delete;
  ProcessExits& operator=(const ProcessExits&) = delete;

  /// A running process, once or again and again.
  void watch(const ProcessId& id, int inner_pid);
  void look();
  /// In the order in which they were seen to end; at most kMost.
  const std::vector<ProcessExitStatus>& ended() const { return ended_; }
  static constexpr size_t kMost = 100'000;

 private:
  struct Watched {
    uint64_t start_ticks = 0;
    int inner_pid = 0;
    int descriptor = -1;  // -1: none could be had
  };
  std::optional<int> status_of(int pid, const Watched& watched) const;

  std::string proc_;
  std::unordered_map<int, Watched> watched_;  // by PID
  std::vector<ProcessExitStatus> ended_;
};

}  // namespace gpumemprof

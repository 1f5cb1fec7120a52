// Samples the machine into a recording while a program runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "devices/accelerator.h"
#include "run/processes.h"

namespace gpumemprof {

/// Who belongs to the run, told by the thread that looks for them. Thread-safe.
class WatchedProcesses {
 public:
  void set(std::vector<ProcessId> processes, bool gpu_driver_seen);
  std::vector<ProcessId> get() const;
  /// Whether any of them ever had a GPU's driver or run time loaded.
  bool gpu_driver_seen() const { return gpu_driver_seen_; }

 private:
  mutable std::mutex mutex_;
  std::vector<ProcessId> processes_;
  std::atomic<bool> gpu_driver_seen_ = false;
};

struct DeviceSamplerOptions {
  std::string folder;       ///< of the recording
  uint64_t most_bytes = 0;  ///< of the file of samples; 0: no limit
  DeviceRoot devices = DeviceRoot::from_environment();
};

/// A thread that writes a sample once a second, one at the start, one at the end, and one as soon
/// as a recorded process counts another refused request for memory. The drivers are asked from the
/// moment on at which a process of the run has one loaded: a program that never does costs nothing
/// but reading /proc. The profiled processes take no part.
class DeviceSampler {
 public:
  DeviceSampler(DeviceSamplerOptions options, std::shared_ptr<WatchedProcesses> processes);
  ~DeviceSampler() { stop(); }
  DeviceSampler(const DeviceSampler&) = delete;
  /// The last sample, then the end. A driver that does not answer is left behind after a while: it
  /// must not keep us from ending as the program did.
  void stop();
  /// Why samples are missing, one sentence; empty where all were written. After stop().
  std::string problem() const;

 private:
  struct Shared;  // lives as long as the thread, which may outlive this object
  std::shared_ptr<Shared> shared_;
};

}  // namespace gpumemprof

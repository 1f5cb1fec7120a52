// The accelerators of this machine while something is watched: asked at every sample for memory,
// and once a second for processes.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "devices/accelerators.h"
#include "devices/visible_device.h"
#include "telemetry/event.h"

namespace gpumemprof {

class DeviceWatch {
 public:
  explicit DeviceWatch(const DeviceRoot& root) : reader_(root) {}

  /// `now_ns`: since 1970. Where the machine has no accelerator it is looked for once a minute.
  /// `first`: which devices there are, before anything is sampled; processes wait.
  void look(int64_t now_ns, bool first = false);
  /// Lists of processes are those of the last time that they were asked for.
  const Accelerators& now() const { return now_; }
  /// Whether the last look asked for processes.
  bool fresh_processes() const { return fresh_; }

 private:
  AcceleratorReader reader_;
  Accelerators now_;
  int64_t next_ns_ = 0, next_processes_ns_ = 0;
  bool fresh_ = false;
};

/// "gpumemprof.cuda_tracker", or rocm or xpu in the place of cuda.
std::string collector_of(const Accelerator& device);

/// Device `index` of the recorded process `pid`: used, free and total of the event, and in metadata
/// which accelerator it is, what the driver says of this process, and what others use. What is
/// absent is named in "unknown". Figures of processes are left out where they are not fresh.
void put_matched(const DeviceWatch& watch, const VisibleDevices& visible, int pid, int index,
                 TelemetryEvent* event, nlohmann::ordered_json* metadata);

/// Used, free and total of an accelerator as a whole, and which one it is.
void put_accelerator(const Accelerator& device, const DeviceMemory& memory, TelemetryEvent* event,
                     nlohmann::ordered_json* metadata);

}  // namespace gpumemprof

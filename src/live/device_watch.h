// The accelerators of this machine during watching: queried for memory at every sample, for
// processes once a second.
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

  /// `now_ns`: since 1970. Without an accelerator the machine is searched for one once a minute.
  /// `first`: which devices there are, before anything is sampled; processes are queried later.
  void look(int64_t now_ns, bool first = false);
  /// Lists of processes are those of the last query.
  const Accelerators& now() const { return now_; }
  /// Whether the last look queried processes.
  bool fresh_processes() const { return fresh_; }

 private:
  AcceleratorReader reader_;
  Accelerators now_;
  int64_t next_ns_ = 0, next_processes_ns_ = 0;
  bool fresh_ = false;
};

/// "gpumemprof.cuda_tracker", or rocm or xpu instead of cuda.
std::string collector_of(const Accelerator& device);

/// Device `index` of the recorded process `pid`: used, free and total of the event, and in metadata
/// the accelerator, the driver's figure for this process, and the use of others. Absent values are
/// named in "unknown". Figures of processes are left out if they are not fresh.
void put_matched(const DeviceWatch& watch, const VisibleDevices& visible, int pid, int index,
                 TelemetryEvent* event, nlohmann::ordered_json* metadata);

/// Used, free and total of a whole accelerator, and which one it is.
void put_accelerator(const Accelerator& device, const DeviceMemory& memory, TelemetryEvent* event,
                     nlohmann::ordered_json* metadata);

}  // namespace gpumemprof

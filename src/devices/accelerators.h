// All accelerators of this machine, whoever made them.
#pragma once

#include <memory>
#include <vector>

#include "devices/accelerator.h"
#include "devices/process_place.h"

namespace gpumemprof {

/// One vendor. Keeps what is opened once: libraries, handles, names.
class AcceleratorSource {
 public:
  virtual ~AcceleratorSource() = default;
  /// Appends its devices, in an order that stays, and a note where a driver is there and cannot be
  /// asked. Nothing of a device that cannot be read is left out: it stands there with the reasons.
  virtual void add(Depth depth, const ProcessPlace& place, Accelerators* out) = 0;
};

// One file a vendor.
std::unique_ptr<AcceleratorSource> nvidia_source(const DeviceRoot& root);
std::unique_ptr<AcceleratorSource> amd_source(const DeviceRoot& root);
std::unique_ptr<AcceleratorSource> intel_source(const DeviceRoot& root);

/// Not thread-safe, and of no use in a child after fork(): make another there.
class AcceleratorReader {
 public:
  explicit AcceleratorReader(DeviceRoot root = DeviceRoot::from_environment());
  AcceleratorReader(AcceleratorReader&&) noexcept = default;
  AcceleratorReader& operator=(AcceleratorReader&&) noexcept = default;

  /// Asks the drivers. Where a machine has none this costs some failed opens at the first call, and
  /// nothing afterwards.
  Accelerators read(Depth depth);
  /// Whether the last read() found a device.
  bool any() const { return any_; }

 private:
  DeviceRoot root_;
  std::vector<std::unique_ptr<AcceleratorSource>> sources_;
  bool any_ = false;
};

/// "--device 5: there are 2 accelerators here", or why no driver shows any; empty where there is
/// one of this number.
std::string why_not_listed(const Accelerators& all, int number);

/// Whether the driver lists the process `pid`, of this PID namespace, on the device.
bool uses(const Accelerator& device, int pid);

/// What is used of the device by the process `pid`; absent with the reason. Where MIG divides the
/// device: in `slice`, or without one in all of them.
Quantity used_by(const Accelerator& device, int pid, const AcceleratorSlice* slice = nullptr);

}  // namespace gpumemprof

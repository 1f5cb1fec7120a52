// Which accelerator of the machine a program means by "cuda:0".
#pragma once

#include <optional>
#include <string>

#include "devices/accelerator.h"

namespace gpumemprof {

/// What a program was told of the devices that it may use.
struct VisibleDevices {
  std::optional<std::string> cuda;  ///< CUDA_VISIBLE_DEVICES: numbers, GPU-…, MIG-…
  std::optional<std::string> rocm;  ///< HIP_VISIBLE_DEVICES, else ROCR_VISIBLE_DEVICES
  bool pci_order = false;           ///< CUDA_DEVICE_ORDER=PCI_BUS_ID: numbers are NVML's

  /// Of "NAME=VALUE" texts that end in NUL, as /proc/PID/environ has them: what the program was
  /// started with. What it set itself later is not in there.
  static VisibleDevices of_environment(const std::string& text);
};

/// `device` is an index into Accelerators::devices, `slice` into its slices.
struct MatchedDevice {
  std::optional<size_t> device, slice;
  std::string why_not;  ///< one clause where there is no device
};

/// Device `index` of process `pid` as PyTorch and TensorFlow number NVIDIA's and AMD's. A device is
/// matched only where nothing else is possible or two sources agree: the only one there is, the
/// only one on which the driver lists the process, or the one that the environment names and that
/// no list contradicts.
MatchedDevice match_device(const Accelerators& all, const VisibleDevices& visible, int pid,
                           int index);

/// The same for a program that asks about itself and may not have used the device yet: `visible` is
/// what it goes by now, and lists of processes tell nothing. Where CUDA has told the UUID (with or
/// without "GPU-" or "MIG-"), that alone counts.
MatchedDevice match_own_device(const Accelerators& all, const VisibleDevices& visible, int index,
                               const std::optional<std::string>& uuid);

/// The memory of what was matched: the slice's where there is one. A match is required.
const DeviceMemory& matched_memory(const Accelerators& all, const MatchedDevice& match);

}  // namespace gpumemprof

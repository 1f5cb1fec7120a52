// What a driver says of one accelerator: the words that every vendor's collector speaks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "devices/quantity.h"

namespace gpumemprof {

/// Where the system lies: a test puts a tree and a library of its own there.
struct DeviceRoot {
  std::string root;                        ///< stands for "/" in front of /proc and /sys
  std::string nvml = "libnvidia-ml.so.1";  ///< as dlopen takes it; empty: none
  /// GPUMEMPROF_DEVICE_ROOT stands for "/" where it is set: for tests of whole commands.
  static DeviceRoot from_environment();
};

/// How much is asked. Memory alone costs some microseconds a device; processes walk /proc.
enum class Depth { kMemory, kProcesses, kEverything };

/// Device memory in bytes. `used` is what is not free: everybody's, and what the driver keeps.
struct DeviceMemory {
  Quantity total, used, free;
  Quantity reserved;  ///< of `used`: what driver and firmware keep for themselves
  /// Who told it, where not the device's driver: kHostMemorySource. Else empty.
  std::string source;
};

/// The figures are the host's: the device shares its memory (GB10, Jetson), and its driver tells none.
inline constexpr const char* kHostMemorySource = "/proc/meminfo";

/// One process that the driver says uses the device.
struct AcceleratorProcess {
  int pid = 0;       ///< as the driver counts
  std::string kind;  ///< "compute", "graphics", "compute+graphics", "mps" or "" where nobody says
  /// Whether this PID is a process that we see. Where it is not, `not_here_because` says so: the
  /// driver may count in another PID namespace, so that the number is somebody else's here.
  bool here = false;
  std::string not_here_because;
  std::string command;  ///< argv with spaces, cut at 1 KiB; empty where it cannot be read
  Quantity used;        ///< device memory of the process
  Known<uint64_t> utilization_percent;
  std::optional<unsigned> gpu_instance, compute_instance;  ///< of MIG: in which slice it runs
};

/// A slice of a GPU that MIG divides: memory of its own, seen by programs as a GPU.
struct AcceleratorSlice {
  unsigned index = 0;
  Known<std::string> name, uuid;
  std::optional<unsigned> gpu_instance, compute_instance;
  DeviceMemory memory;
};

struct Accelerator {
  int number = 0;      ///< place in the list: NVIDIA's in NVML's order, then AMD's, then Intel's
  std::string vendor;  ///< "nvidia", "amd", "intel"
  std::string source;  ///< who was asked: "NVML", "sysfs", "/proc/driver/nvidia"
  Known<std::string> name, uuid, pci_bus_id, driver_version;
  DeviceMemory memory;
  Quantity host_total, host_used;  ///< host memory that the GPU may map (AMD's GTT)
  Known<uint64_t> utilization_percent, memory_utilization_percent;
  Known<uint64_t> temperature_celsius, power_milliwatts;
  Known<bool> mig;  ///< whether MIG divides it
  std::vector<AcceleratorSlice> slices;
  Known<std::vector<AcceleratorProcess>> processes;  ///< by PID; absent where nobody may tell
  std::string processes_note;  ///< one sentence where the list may not be whole; else empty
};

struct Accelerators {
  std::vector<Accelerator> devices;
  /// Why nothing, or not all, could be asked: one sentence a vendor whose driver is there and whose
  /// figures are not; where there is no device at all, what was looked for.
  std::vector<std::string> notes;
};

}  // namespace gpumemprof

// libnvidia-ml.so.1, opened at run time: its functions, those that this driver has, and what its
// refusals mean.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "devices/nvml.h"

namespace gpumemprof {

/// Null for a function that this driver does not have. Where a function has several versions they
/// stand newest first. Not thread-safe.
struct NvmlLibrary {
  nvml::Return (*device_count)(unsigned*) = nullptr;
  nvml::Return (*device_by_index)(unsigned, nvml::Device*) = nullptr;
  nvml::Return (*driver_version)(char*, unsigned) = nullptr;
  nvml::Return (*name)(nvml::Device, char*, unsigned) = nullptr;
  nvml::Return (*uuid)(nvml::Device, char*, unsigned) = nullptr;
  nvml::Return (*pci_info)(nvml::Device, nvml::PciInfo*) = nullptr;
  nvml::Return (*memory)(nvml::Device, nvml::Memory*) = nullptr;
  nvml::Return (*memory_v2)(nvml::Device, nvml::MemoryV2*) = nullptr;
  nvml::Return (*utilization)(nvml::Device, nvml::Utilization*) = nullptr;
  nvml::Return (*temperature)(nvml::Device, int, unsigned*) = nullptr;
  nvml::Return (*power)(nvml::Device, unsigned*) = nullptr;
  nvml::Return (*mig_mode)(nvml::Device, unsigned*, unsigned*) = nullptr;
  nvml::Return (*mig_count)(nvml::Device, unsigned*) = nullptr;
  nvml::Return (*mig_device)(nvml::Device, unsigned, nvml::Device*) = nullptr;
  nvml::Return (*gpu_instance)(nvml::Device, unsigned*) = nullptr;
  nvml::Return (*compute_instance)(nvml::Device, unsigned*) = nullptr;
  nvml::Return (*process_utilization)(nvml::Device, nvml::ProcessSample*, unsigned*,
                                      unsigned long long) = nullptr;
  /// Lists of processes: compute, graphics, those below MPS. `entry_bytes` is what the version that
  /// was found writes: 24, or 16 for the first one.
  struct ProcessList {
    const char* kind;
    nvml::Return (*list)(nvml::Device, unsigned*, void*) = nullptr;
    size_t entry_bytes = 0;
  };
  std::vector<ProcessList> process_lists;

  /// Opens and initialises. Errors: kNotFound where there is no such library, kSystem where it is
  /// there and does not work (driver not loaded, versions that do not fit), with the reason.
  static Result<std::unique_ptr<NvmlLibrary>> open(const std::string& path);
  NvmlLibrary() = default;
  NvmlLibrary(const NvmlLibrary&) = delete;
  NvmlLibrary& operator=(const NvmlLibrary&) = delete;
  ~NvmlLibrary();  ///< ends NVML's session; the library stays mapped, as other users may need it

  /// Why there is no value: one clause without an article of ours, "NVML: not supported …".
  std::string reason(nvml::Return code) const;

 private:
  nvml::Return (*shutdown_)() = nullptr;
  const char* (*error_text_)(nvml::Return) = nullptr;
};

/// The reason for a function that the driver does not have.
inline constexpr const char* kNvmlTooOld = "this driver's NVML is too old";

}  // namespace gpumemprof

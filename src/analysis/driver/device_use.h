// How full the machine was while a program was recorded: what its drivers and the kernel said, at
// the samples that `run` took.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gpumemprof {

struct RecordedSamples;  // recording/samples_file.h

/// A value at one sample, or why there is none.
struct SampledBytes {
  std::optional<uint64_t> bytes;
  std::shared_ptr<const std::string> why;  ///< one for all samples that have it
  /// Empty where there is a value.
  std::string absent_because() const { return why ? *why : std::string(); }
};

/// Memory at one sample: everybody's, and that of the processes of this run.
struct UseAtLook {
  uint64_t time_ns = 0;
  SampledBytes used;  ///< of a device by everybody; of the host what is not available
  SampledBytes own;   ///< by the run's processes; of the host the sum of their RSS
};

/// One memory: an accelerator, or the host's.
struct MemoryUse {
  uint32_t run_pid = 0;  ///< of the `run` that sampled it
  std::string name;      ///< "nvidia:0", "host"
  std::string model;     ///< "NVIDIA H200"; empty where not told
  std::string source;    ///< who said so: "NVML", "sysfs", "/proc"
  SampledBytes total;    ///< as told last
  SampledBytes limit;    ///< of the host: the lowest limit of a cgroup
  std::vector<UseAtLook> looks;
  std::optional<UseAtLook> highest;      ///< by `used`
  std::optional<UseAtLook> highest_own;  ///< by `own`
  std::optional<UseAtLook> at_peak;      ///< the sample nearest to the peak
  std::vector<UseAtLook> at_refusals;    ///< the first after a request for memory was refused
};

struct DeviceUse {
  uint64_t looks = 0, missing_looks = 0;
  uint64_t first_time_ns = 0, last_time_ns = 0;
  std::vector<MemoryUse> devices;
  std::vector<MemoryUse> hosts;  ///< one for each machine that was sampled
  /// Why there are no devices, as the last sample says; empty where there are.
  std::string no_devices_because;
  std::vector<std::string> left_out;  ///< one sentence each: what is more than there is room for
};

/// What `samples` tell; nothing where there are none. `peak_time_ns`: of the peak that reports are
/// about, where there is one. Files are hostile: of very many samples every second, third, … is
/// taken, of very many devices the first.
std::optional<DeviceUse> device_use(const std::vector<RecordedSamples>& samples,
                                    std::optional<uint64_t> peak_time_ns);

}  // namespace gpumemprof

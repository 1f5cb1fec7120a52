// What the device itself said while a process was recorded: the other side of the sum that
// driver_memories.h adds up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/pci_address.h"

namespace gpumemprof {

struct RecordedSamples;  // recording/samples_file.h
struct Process;          // trace/tables.h

struct DeviceTruth {
  uint64_t time_ns = 0;                        ///< when it was asked, on the recording's clock
  std::optional<uint64_t> device_used_bytes;   ///< by everybody; reserved_bytes is part of it
  std::optional<uint64_t> process_used_bytes;  ///< by this process, as the driver counts it
  std::optional<uint64_t> others_used_bytes;   ///< the sum of all other processes
  std::optional<uint64_t> reserved_bytes;      ///< by the driver for itself
  std::string why_no_process, why_no_others;   ///< where these are unknown; may be empty
};

/// One sample of a device that a process uses.
struct TruthOfProcess {
  uint32_t pid = 0;
  bool is_only_device = true;       ///< the process uses no other
  std::optional<PciAddress> place;  ///< of the device
  std::string_view host;            ///< lives as long as the samples
  DeviceTruth truth;
};

/// Every sample in which NVML names one of `processes` and its bytes, in order of time. Of a
/// process that uses several devices those are left out whose place is not told: the samples have
/// NVML's numbers, the driver's events CUDA's. Files are hostile: what is more than any machine
/// has is left out and told in `problems`.
std::vector<TruthOfProcess> device_truths(const std::vector<RecordedSamples>& samples,
                                          const std::vector<Process>& processes,
                                          std::vector<std::string>* problems);

}  // namespace gpumemprof

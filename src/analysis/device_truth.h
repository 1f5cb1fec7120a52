// What the device itself said at a moment, where the recording has that: the other side of the sum
// that driver_memories.h adds up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trace/tables.h"

namespace gpumemprof {

struct DeviceTruth {
  uint64_t time_ns = 0;                        ///< when it was asked, on the recording's clock
  std::optional<uint64_t> device_used_bytes;   ///< by everybody; reserved_bytes is part of it
  std::optional<uint64_t> process_used_bytes;  ///< by this process, as the driver counts it
  std::optional<uint64_t> others_used_bytes;   ///< the sum of all other processes
  std::optional<uint64_t> reserved_bytes;      ///< by the driver for itself
};

/// The last sample of the device that was taken for the process at `time_ns` or before it. Empty
/// where the recording has none.
std::optional<DeviceTruth> recorded_device_truth(const Tables& tables, uint32_t process,
                                                 int8_t device_index, uint64_t time_ns);

}  // namespace gpumemprof

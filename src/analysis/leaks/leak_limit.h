// When memory that grows will have reached what there is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/leaks/leaks.h"

namespace gpumemprof {

struct LeakLimit {
  std::optional<uint64_t> limit_bytes;
  std::optional<uint64_t> steps_left;    ///< whole steps after the last that was recorded
  std::optional<uint64_t> seconds_left;  ///< at the pace of the recorded steps
  std::string why_unknown;               ///< where there is no limit_bytes
};

/// What was given on the command line, else the device's own size, where the recording has it.
std::optional<uint64_t> memory_limit(uint16_t device, const Tables& tables,
                                     std::optional<uint64_t> capacity_bytes);

/// `capacity_bytes` is what was given on the command line, if so. Else the device's own size, where
/// the recording has it. `held_bytes`: live on the device at the end.
LeakLimit limit_of(const Leak& leak, const Tables& tables, uint64_t held_bytes,
                   std::optional<uint64_t> capacity_bytes);

}  // namespace gpumemprof

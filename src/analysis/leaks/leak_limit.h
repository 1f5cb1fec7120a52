// When memory that grows will have reached what there is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/analysis.h"
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

/// What a device has, and what of it was left.
struct Room {
  std::optional<uint64_t> limit_bytes;
  uint64_t free_bytes = 0;
};

/// memory_limit() less `held_bytes`, live on the device at the end. Of the host's memory what the
/// samples say was left of it, whoever held the rest. `host_rooms` may be null.
Room room_of(uint16_t device, const Tables& tables, uint64_t held_bytes,
             std::optional<uint64_t> capacity_bytes, const std::vector<HostRoom>* host_rooms);

/// Of the process whose host memory the device is; null where there is none, or no samples.
const HostRoom* host_room_of(uint16_t device, const Tables& tables,
                             const std::vector<HostRoom>* host_rooms);

LeakLimit limit_of(const Leak& leak, const Room& room);

/// A run like the one that was recorded does not get to its end a second time.
void end_again(Finding* finding);

}  // namespace gpumemprof

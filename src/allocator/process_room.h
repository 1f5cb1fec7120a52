// What a process could have of its device when a request was refused. The only place that decides
// it: the explanation of a refusal, the settings that are tried and every report go by it.
#pragma once

#include <cstdint>
#include <optional>

#include "allocator/config.h"
#include "allocator/simulator.h"
#include "trace/allocator_trace.h"

namespace gpumemprof {

enum class RoomBasis : uint8_t {
  kDevice,    ///< what it had reserved and what the device had free
  kLimit,     ///< its own limit, known to the byte
  kRounded,   ///< its own limit, as the error's message rounds it
  kRefusals,  ///< its own limit, of which only the refusal itself tells
};
const char* room_basis_name(RoomBasis basis);  ///< "device", "limit", "rounded_limit", "refusal"

struct ProcessRoom {
  /// The most that it could have reserved; of a limit that is not exact the likeliest (kRounded) or
  /// the least (kRefusals).
  uint64_t bytes = 0;
  /// What it can have been, both included; the same where it is exact.
  uint64_t least_bytes = 0, most_bytes = 0;
  RoomBasis basis = RoomBasis::kDevice;
  bool is_by_settings = false;  ///< the limit is per_process_memory_fraction of the settings
  bool is_own_limit() const { return basis != RoomBasis::kDevice; }
  bool operator==(const ProcessRoom&) const = default;
};

/// At the kOom event `event`, right after which `simulator` stands. The process's own limit is
/// AllocatorTrace::reserve_limit, else the recorded per_process_memory_fraction; where neither is
/// known and the device had enough free, what was reserved before is less than the limit, and what
/// was refused is more.
ProcessRoom room_at_refusal(const AllocatorTrace& trace, uint64_t event,
                            const Simulator& simulator);

/// The same at the first refusal, from a replay under the recorded settings; absent without one.
std::optional<ProcessRoom> room_at_first_refusal(const AllocatorTrace& trace,
                                                 const RecordedSettings& settings,
                                                 const Release& release);

/// `config` on what there was: a device of that size, or the same limit. Where the settings set the
/// limit, those of `config` may set another. `device_bytes` is the device's size, 0 where unknown.
void take_room(const ProcessRoom& room, uint64_t device_bytes, AllocatorConfig* config);

/// Free memory of the device that a request needs if it is served by new memory.
uint64_t new_memory_needed(uint64_t asked_bytes, const AllocatorConfig& config);

}  // namespace gpumemprof

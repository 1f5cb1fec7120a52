// An attempt that was refused memory and whose frames are held, so that the next attempt lacks what it
// made: what "try again" within an `except` block does, where the exception keeps its traceback.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/analysis.h"

namespace gpumemprof {

struct HeldAttempt {
  uint64_t bytes = 0;   ///< of it, still live when the last request was refused
  uint32_t stack = 0;   ///< of the request that it was refused
  uint32_t again = 0;   ///< StackTable id: the line of the function that called it, and calls again
};

/// By the last refusal of the device. The function that called the attempt is at another line by
/// then, so it is over, and yet nothing that it made was freed; without that the last request would
/// have found as much free as there had been before. Absent where any of this is not so.
std::optional<HeldAttempt> held_attempt(const DeviceAnalysis& device, const Tables& tables);

/// The last allocation that shows that the program went on after its last refusal. One that raised
/// no exception and allocated less than a twentieth of what was live then did not.
uint64_t last_work_event(const DeviceAnalysis& device, const ProgramEnds& ends);

}  // namespace gpumemprof

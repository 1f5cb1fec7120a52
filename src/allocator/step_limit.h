// How much work a simulation of a trace may take.
#pragma once

#include <cstdint>

#include "allocator/simulator.h"

namespace gpumemprof {

/// Steps (Simulator::steps) in searches that no structure shortens: so many an event, and what a
/// short trace may need. Traces of real programs take less than one an event, and a file that is
/// made to take more costs no more than its length allows.
inline constexpr uint64_t kStepsAnEvent = 256, kLeastStepLimit = 10'000'000;

inline uint64_t step_limit(uint64_t events) { return kLeastStepLimit + kStepsAnEvent * events; }

}  // namespace gpumemprof

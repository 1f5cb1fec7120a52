// Puts the monotonic clocks of several machines on one, by what the recorded processes did together.
//
// No rank leaves a collective before all have entered it. So each collective bounds how far two
// clocks are apart, from both sides, whatever the network does: an error that is proven, not assumed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "trace/event.h"
#include "trace/tables.h"

namespace gpumemprof {

/// When the ranks of one clock were in a collective, on that clock.
struct CollectiveTimes {
  uint64_t last_begin_ns = 0;          ///< 0: not known
  uint64_t first_end_ns = UINT64_MAX;  ///< UINT64_MAX: not known
};
struct ClockSamples {
  int64_t wall_offset_ns = 0;                       ///< wall clock minus this one, as a file has it
  std::map<uint64_t, CollectiveTimes> collectives;  ///< by Mark::collective()

  void take(const Mark& mark);
};

/// One for each. No shift is negative; the clock that all are told on is that of the machine booted
/// first. What shares no collectives with it, over others or directly, is put there by the wall
/// clocks.
std::vector<MachineClock> align_clocks(std::span<const ClockSamples> clocks);

}  // namespace gpumemprof

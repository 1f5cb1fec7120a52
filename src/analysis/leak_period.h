// Where the steps of a program are, so that memory can be compared from step to step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/leak_history.h"

namespace gpumemprof {

struct Period {
  enum class From : uint8_t { kNothing, kMarks, kCallSite };
  From from = From::kNothing;
  std::string why_none;  ///< where there is none: one phrase
  /// Steps that have ended by the end of each window, counted from the first.
  std::vector<uint64_t> done;
  uint32_t first_window = 0, last_window = 0;  ///< of the part of the run that goes in steps
  uint64_t steps() const { return done.empty() ? 0 : done.back(); }
  uint32_t stack = 0;  ///< kCallSite: the stack whose allocations were counted
};

/// With fewer steps than this there is no telling a trend from a warm-up.
inline constexpr uint64_t kLeastSteps = 12;

/// The program's own marks where it has enough of them. Else the number of allocations that most
/// stacks have in common is the number of steps: in a loop nearly every line allocates once a
/// round; of these stacks the one that is spread most evenly over the run is the metronome.
Period find_period(const ProcessHistory& history);

}  // namespace gpumemprof

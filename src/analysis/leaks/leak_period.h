// Where the steps of a program are, so that memory can be compared from step to step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/leaks/leak_history.h"
#include "trace/tables.h"

namespace gpumemprof {

struct Period {
  enum class From : uint8_t { kNothing, kMarks, kRounds };
  From from = From::kNothing;
  std::string why_none;  ///< where there is none: one phrase
  /// Steps that have ended by the end of each window, counted from the first.
  std::vector<uint64_t> done;
  uint32_t first_window = 0, last_window = 0;  ///< of the part of the run that goes in steps
  uint64_t steps() const { return done.empty() ? 0 : done.back(); }
  uint32_t stack = 0;  ///< kRounds: the stack whose allocations were counted
  /// Work is done in each: the program marks them, or its rounds run a module or a backward pass.
  /// Else what is kept may be data that is loaded.
  bool are_steps = false;
  bool in_worker = false;  ///< kRounds: of a process that works for another one
};

/// With fewer than this there is no telling a trend from a warm-up; of rounds, no telling a loop
/// from chance.
inline constexpr uint64_t kLeastSteps = 8, kLeastRounds = 12;

/// The steps that the program marked, where there are enough; and the rounds of its loop
/// (leak_rounds.h) where it marks too few, or none in the second half of its life, after its last
/// mark. One at least: where there is neither, it says why.
std::vector<Period> find_periods(const ProcessHistory& history, const Tables& tables);

}  // namespace gpumemprof

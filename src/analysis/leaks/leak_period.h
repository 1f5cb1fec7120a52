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
  uint32_t from_window = 0;  ///< kRounds: the first after the last step; 0: too few are marked
  /// Work is done in each: the program marks them, or its rounds run a module or a backward pass.
  /// Else what is kept may be data that is loaded.
  bool are_steps = false;
  bool in_worker = false;  ///< kRounds: of a process that works for another one
};

/// With fewer than this there is no telling a trend from a warm-up; of rounds, no telling a loop
/// from chance.
inline constexpr uint64_t kLeastSteps = 8, kLeastRounds = 12;
/// As many rounds after the last mark are a loop of their own where they are less than half of the
/// process's life; fewer may be a last look at what was trained.
inline constexpr uint64_t kLeastRoundsAfterSteps = 24;

/// The steps that the program marked, where there are enough; and the rounds of its loop
/// (leak_rounds.h): those after its last mark, or all where it marks too few. One at least: where
/// there is neither, it says why.
std::vector<Period> find_periods(const ProcessHistory& history, const Tables& tables);

}  // namespace gpumemprof

// Where the steps of a program are, so that memory can be compared from step to step; and what its
// passes make and drop in them.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
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

/// Rounds of a loop, in a program that marks no steps.
struct Rounds {
  uint32_t stack = 0;           ///< whose allocations are counted
  std::vector<HeldCell> cells;  ///< of that stack
  uint64_t count = 0;
  uint64_t allocs_a_round = 1;  ///< of that stack
  bool have_passes = false;  ///< a module is called, or a backward pass runs, in the rounds
  bool in_worker = false;    ///< of a process that multiprocessing or a DataLoader started
};

/// A loop is known by what repeats: several stacks allocate as often, to the end of the process,
/// and part of what they make is gone a round later, or a module is called. A loop of a library is
/// one call of the program's, and one within a module's call is one pass: neither goes in steps,
/// but Keras's fit does. A worker's life is its loop: there one stack is enough if it is none of a
/// comprehension, as it is where each round joins what there is with more into a larger block.
/// Models that take each other's place have a name and so a stack each, which are one here. Looks
/// at windows from `from_window`; `why_none` is one phrase. Adds to `steps`, where it is given, how
/// many stacks or counts were compared.
std::optional<Rounds> find_rounds(const ProcessHistory& history, const Tables& tables,
                                  uint32_t from_window, std::string* why_none,
                                  uint64_t* steps = nullptr);

/// The steps that the program marked, where there are enough; and the rounds of its loop: those after
/// its last mark, or all where it marks too few. One at least: where there is neither, it says why.
std::vector<Period> find_periods(const ProcessHistory& history, const Tables& tables);

/// What the forward and backward passes of a process make and drop: does it get larger from step to
/// step? Then so does the data, and a tensor that is replaced by a larger one is no leak.
struct Passes {
  bool have_backward = false;
  bool have_backward_in_steps = false;  ///< of the period: graphs that its steps make may be used
  /// In the last third of the steps the blocks of modules and of backward passes are larger than in
  /// the first, for a quarter of their bytes or more (parameters' gradients stay as they are).
  bool sizes_rise = false;
  /// One stack's do: where a model only answers, its work grows with what it looks back on.
  bool a_size_rises = false;
  /// Of rounds without passes: what they drop gets larger, too, or no block that they make is what
  /// their larger blocks grow by. So these are not joined from what is made.
  bool rounds_work_on_more = false;
};

using GrowingStacks = absl::flat_hash_map<uint32_t, double>;  ///< bytes a step by stack

/// `grows`: stacks that are left out, as it is they that are asked about.
Passes passes_of(const ProcessHistory& history, const Period& period, const Tables& tables,
                 const GrowingStacks& grows = {});

}  // namespace gpumemprof

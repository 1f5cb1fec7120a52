// Lines of the program that keep more with every step.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/leaks/leak_growth.h"
#include "analysis/leaks/leak_history.h"
#include "analysis/leaks/leak_period.h"
#include "trace/tables.h"

namespace gpumemprof {

/// One stack of such a line.
struct LeakStack {
  uint32_t stack = 0;
  uint64_t told_by_bytes = 0;  ///< as SiteHistory's
  LeakGrowth growth;
  uint64_t live_bytes = 0, live_count = 0;
  uint64_t survivors = 0;      ///< blocks that were made after the warm-up and are still live
  uint64_t largest_bytes = 0;  ///< of these
  uint64_t survivor_bytes = 0;
  uint64_t old_survivors = 0;  ///< of these, those that are older than the last few steps
};

/// All that one line of the user's (of a library's, where the stack has none of his) keeps on one
/// device of one process.
struct Leak {
  uint32_t process = 0;  ///< index in Tables::processes
  uint16_t device = 0;
  uint32_t node = 0;              ///< StackTable id of the line's frame; 0: no stack is known
  std::vector<LeakStack> stacks;  ///< that grow; the one that grows most first
  std::vector<uint32_t> others;   ///< stacks of the same line that do not
  double bytes_a_step = 0, survivors_a_step = 0;
  uint64_t live_bytes = 0, grown_bytes = 0;  ///< grown_in_steps()
  uint64_t steps = 0;  ///< looked at
  Period::From period_from = Period::From::kNothing;
  uint32_t round_node = 0;  ///< kRounds: the line of the program that each round runs
  bool is_after_steps = false;  ///< kRounds: they come after the last step
  double seconds_a_step = 0;  ///< 0: not known
  bool are_steps = false;     ///< of Period: else what grows may be data that is loaded
  bool is_training = false;   ///< backward passes ran in the process
  bool trains_in_steps = false;  ///< likewise, in the steps or rounds that are looked at
  bool sizes_rise = false;    ///< what its passes make and drop gets larger, too
  bool a_size_rises = false;  ///< likewise of one stack of its passes, however small
  bool is_retraced = false;   ///< TensorFlow traces a function that it calls, again and again
  bool is_used_after = false; ///< something new is allocated when the line has done so to its end
  const LeakGrowth& most() const { return stacks.front().growth; }
};

/// What the leak grows by in `steps` at its rate: not all of its stacks are measured over as many.
uint64_t grown_in_steps(const Leak& leak);

/// Of what comes at most eight times before the last step, four steps apart or more, as once an epoch
/// or for each fold: how often, and how many steps apart. Else nothing.
struct FewTimes {
  uint64_t times = 0, steps_apart = 0;
  uint64_t bytes = 0;  ///< of each
};
std::optional<FewTimes> few_times(const Leak& leak);

/// When the first `steps` steps had ended.
uint64_t time_after(uint64_t steps, const ProcessHistory& history, const Period& period);

/// Whether the line is one expression of Python that fills one list.
bool is_comprehension(const Tables& tables, uint32_t line);

/// The line that a stack is told by: own_node(), else the innermost line of a library.
uint32_t leak_line(const Tables& tables, uint32_t stack);

/// The innermost line of the program's own outside of every module's call: a loop's, where rounds
/// of it call a model.
uint32_t call_line(const Tables& tables, uint32_t stack);

/// Largest growth first.
std::vector<Leak> find_leaks(const std::vector<ProcessHistory>& histories, const Tables& tables);

}  // namespace gpumemprof

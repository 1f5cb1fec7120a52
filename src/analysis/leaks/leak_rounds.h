// Rounds of a loop, in a program that marks no steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/leaks/leak_history.h"
#include "trace/tables.h"

namespace gpumemprof {

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

}  // namespace gpumemprof

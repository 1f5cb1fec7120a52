// What the forward and backward passes of a process make and drop: does it get larger from step to
// step? Then so does the data, and a tensor that is replaced by a larger one is no leak.
#pragma once

#include <absl/container/flat_hash_map.h>

#include "analysis/leaks/leak_history.h"
#include "analysis/leaks/leak_period.h"
#include "trace/tables.h"

namespace gpumemprof {

struct Passes {
  bool have_backward = false;
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

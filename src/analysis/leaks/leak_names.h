// Which bug it is, and its fix: a table of rules on evidence.
#pragma once

#include "analysis/leaks/leak_evidence.h"

namespace gpumemprof {

/// The name of what is no leak: the program's data gets larger.
inline constexpr const char* kSizesRise = "sizes_rise";

/// The name of what is no leak: a deque with a maxlen that is not full yet, or has just become so.
inline constexpr const char* kFillsToLimit = "fills_to_limit";

/// The name where no rule's evidence is there: the line and the holder are all that is known.
inline constexpr const char* kGrowth = "growth";

/// The kind of what grows with every round of a loop without a known step.
inline constexpr const char* kGrowthInLoop = "growth_in_loop";

struct LeakName {
  const char* name;   ///< "loss_kept_with_graph"; what `name` of a finding is
  const char* title;  ///< what happens, to follow "this line keeps …: "
  const char* fix;    ///< one sentence without a full stop
};

/// Whether the name says that what is kept is a KV cache.
bool is_kv_cache(const LeakName& name);

/// The first rule whose evidence is there; kGrowth where none is.
const LeakName& name_leak(const LeakEvidence& evidence);

}  // namespace gpumemprof

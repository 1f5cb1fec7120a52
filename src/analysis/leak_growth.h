// Does what a stack holds grow from step to step, or did it fill and stop?
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/leak_history.h"
#include "analysis/leak_period.h"

namespace gpumemprof {

/// The growth of the floor: the least that is live between one group of steps and the next. What
/// comes and goes within a step never counts.
struct LeakGrowth {
  double bytes_a_step = 0;   ///< Theil-Sen slope, warm-up excluded
  double z = 0;              ///< Mann-Kendall's, with the correction for ties
  uint64_t grown_bytes = 0;  ///< of the floor, from the end of the warm-up to the end
  uint64_t rises = 0;        ///< how often it went up and never came back
  uint64_t points = 0;       ///< of the floor that were compared
  uint64_t warm_up_steps = 0;
  uint64_t steps_after_warm_up = 0;  ///< to the end of the run
  uint64_t steps = 0;                ///< looked at, the warm-up not counted
};

/// Nothing where it does not grow to the very end: it stays, fills and stops, comes and goes, or
/// there are too few steps to tell.
std::optional<LeakGrowth> growth_of(const SiteHistory& site, const Period& period);

}  // namespace gpumemprof

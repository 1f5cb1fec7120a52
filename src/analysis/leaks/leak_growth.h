// Does what a line holds grow from step to step, or did it fill and stop?
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/leaks/leak_history.h"
#include "analysis/leaks/leak_period.h"

namespace gpumemprof {

/// The growth of the floor: the least that is live between one group of steps and the next. What
/// comes and goes within a step never counts.
struct LeakGrowth {
  double bytes_a_step = 0;          ///< `grown_bytes` by `steps`
  double z = 0;                     ///< Mann-Kendall's, with the correction for ties
  uint64_t grown_bytes = 0;         ///< from the end of the first rise to the end of the last
  uint64_t steps = 0;               ///< between these two
  uint64_t rises = 0;               ///< how often it went up and never came back
  uint64_t points = 0;              ///< of the floor that were compared
  uint64_t warm_up_steps = 0;       ///< left out before
  std::vector<uint64_t> rise_steps; ///< when the rises were over
  /// When it went up and never came back, in the whole run: rises of adjacent windows are one time.
  /// The last one only if the last step is left out, as what is held at the end alone looks like it.
  std::vector<uint64_t> time_steps;
  bool comes_at_end = false;  ///< also in the last step, with at least half of what others bring
  bool slows = false;  ///< its last third grew 2.5 times less than its first, or even less
};

using Sites = std::span<const SiteHistory* const>;

/// The least that all of these held together, by window.
std::vector<double> floors_by_window(Sites sites, const Period& period);

/// Of what all of these hold together. Nothing where it does not grow to the very end: it stays,
/// fills and stops, comes and goes, or there are too few steps to tell.
std::optional<LeakGrowth> growth_of(Sites sites, const Period& period);
std::optional<LeakGrowth> growth_of(const SiteHistory& site, const Period& period);

/// The figures of a stack whose line grows: nothing where it does not rise with it, from the first
/// third of the growth to the last.
std::optional<LeakGrowth> growth_along(const SiteHistory& site, const Period& period);

}  // namespace gpumemprof

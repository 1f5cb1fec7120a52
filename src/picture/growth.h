// Does what is live grow for good, and how fast?
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/statistics/growth.h"
#include "live/follow_observer.h"

namespace gpumemprof {

/// Looks at the floor: the least that was live in each of up to 120 windows of equal length, the
/// first quarter of them, where a program warms up, left out. Growth is told where growth_of_floor()
/// tells it, of at least 1 MiB; its rate is the Theil-Sen slope.
/// Not thread-safe.
class LiveGrowth {
 public:
  static constexpr double kWindowSeconds = 1;  ///< at first; doubled whenever there are too many
  static constexpr size_t kLeastWindows = 12, kMostWindows = 120;
  static_assert(kWindowSeconds * kLeastWindows == kLeastSecondsFromOutside);

  /// What is live from `seconds` on; a time before the last one counts as that.
  void add(double seconds, uint64_t live_bytes);

  FollowedGrowth judge() const;

 private:
  void close_windows(double seconds);

  std::vector<double> floors_;  // of windows that are over
  double window_seconds_ = kWindowSeconds, window_begin_ = 0, floor_ = 0, live_ = 0;
  bool began_ = false;
};

}  // namespace gpumemprof

// Does what is live grow for good, and how fast?
#pragma once

#include <cstdint>
#include <vector>

#include "analysis/statistics/growth.h"
#include "live/follow_observer.h"

namespace gpumemprof {

/// Looks at the floor: the least that was live in each of up to 120 windows, the first quarter of
/// them, where a program warms up, left out. A window is a number of steps of the program; where no
/// steps are known, or none has ended for long, it is a time. Growth is told where growth_of_floor()
/// tells it, of at least 1 MiB; its rate is the Theil-Sen slope. That nothing grows is told where
/// the last sixth of the windows was down at the least of all.
/// Not thread-safe.
class LiveGrowth {
 public:
  static constexpr double kWindowSeconds = 1;  ///< at first; doubled whenever there are too many
  static constexpr size_t kLeastWindows = 12, kMostWindows = 120;
  static_assert(kWindowSeconds * kLeastWindows == kLeastSecondsFromOutside);

  /// What is live from `seconds` on; a time before the last one counts as that.
  void add(double seconds, uint64_t live_bytes);
  /// A step of the program ends.
  void end_step(double seconds);

  FollowedGrowth judge() const;

 private:
  struct Windows {
    std::vector<double> floors, ends_s;  // of those that are over
    double length = kWindowSeconds;      // or as many steps
    double floor = 0;                    // of the one that is not over
    void close(double end_s, double live);
  };

  bool has_steps() const;

  Windows times_, steps_;
  uint64_t steps_in_last_ = 0, step_count_ = 0;
  double begin_s_ = 0, window_begin_s_ = 0, last_step_s_ = 0, now_s_ = 0, live_ = 0;
  bool began_ = false;
};

}  // namespace gpumemprof

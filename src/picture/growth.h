// Does what is live grow for good, and how fast? Asked of samples, so that it costs nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpumemprof {

/// Looks at the floor: the least that was live in each of up to 120 windows of equal length, the
/// first quarter of them, where a program warms up, left out. Growth is told where growth_of_floor()
/// tells it, of at least 1 MiB; its rate is the Theil-Sen slope.
/// Not thread-safe.
class LiveGrowth {
 public:
  static constexpr double kWindowSeconds = 2;  ///< at first; doubled whenever there are too many
  static constexpr size_t kLeastWindows = 12, kMostWindows = 120;

  /// `seconds`: of a steady clock, never going back.
  void add(double seconds, uint64_t live_bytes);

  /// Empty: it does not grow, or cannot be told yet, as why_none() says.
  std::optional<double> bytes_per_second() const { return rate_; }
  const std::string& why_none() const { return why_none_; }

 private:
  void close_windows(double seconds);
  void judge();

  std::vector<double> floors_;  // of windows that are over
  double window_seconds_ = kWindowSeconds, window_begin_ = 0, floor_ = 0;
  bool began_ = false;
  std::optional<double> rate_;
  std::string why_none_ = "growth is known after 24 s of watching";
};

}  // namespace gpumemprof

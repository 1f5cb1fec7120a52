// When a figure is to be spoken of: thresholds with a hysteresis and a pause.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace gpumemprof {

/// Between two alerts of one level, where nobody asks for another pause.
inline constexpr int64_t kAlarmPauseNs = 60'000'000'000;

/// Speaks when a value enters a level, and again only after it has left that level, which is below
/// threshold - hysteresis. Two alerts of one level are at least a pause apart; one that was kept
/// back comes when the pause is over, if the level still holds. A higher level never waits for a
/// lower one. Not thread-safe.
class Alarm {
 public:
  /// Thresholds rise; there is one at least.
  Alarm(std::vector<double> thresholds, double hysteresis, int64_t pause_ns = kAlarmPauseNs)
      : thresholds_(std::move(thresholds)), hysteresis_(hysteresis), pause_ns_(pause_ns) {}

  struct Alert {
    size_t level;
    uint64_t suppressed;  ///< alerts kept back since the last one
  };
  /// Times are of any clock that does not go back.
  std::optional<Alert> update(int64_t time_ns, double value);
  /// The level that holds now, whether or not its alert was kept back.
  std::optional<size_t> active() const;
  uint64_t suppressed_total() const { return suppressed_total_; }

 private:
  std::optional<Alert> speak(int64_t time_ns, bool is_new);

  std::vector<double> thresholds_;
  double hysteresis_;
  int64_t pause_ns_;
  size_t held_ = 0;  // levels that hold
  bool pending_ = false;
  std::map<size_t, int64_t> last_ns_;
  uint64_t suppressed_ = 0, suppressed_total_ = 0;
};

}  // namespace gpumemprof

#include "telemetry/alarm.h"

#include <utility>

namespace gpumemprof {

std::optional<Alarm::Alert> Alarm::update(int64_t time_ns, double value) {
  size_t reached = 0;
  while (reached < thresholds_.size() && value >= thresholds_[reached]) ++reached;
  if (reached > held_) {
    held_ = reached;
    return speak(time_ns, true);
  }
  while (held_ > reached && value < thresholds_[held_ - 1] - hysteresis_) {
    --held_;  // the alert of the level below belongs to the way up
    pending_ = false;
  }
  if (pending_ && held_ > 0) return speak(time_ns, false);
  return std::nullopt;
}

std::optional<size_t> Alarm::active() const {
  return held_ > 0 ? std::optional(held_ - 1) : std::nullopt;
}

std::optional<Alarm::Alert> Alarm::speak(int64_t time_ns, bool is_new) {
  const size_t level = held_ - 1;
  const auto last = last_ns_.find(level);
  pending_ = last != last_ns_.end() && time_ns - last->second < pause_ns_;
  if (pending_) {
    suppressed_ += is_new;
    suppressed_total_ += is_new;
    return std::nullopt;
  }
  last_ns_[level] = time_ns;
  return Alert{level, std::exchange(suppressed_, 0)};
}

}  // namespace gpumemprof

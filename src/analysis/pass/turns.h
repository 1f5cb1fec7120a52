// Where memory turned from going up to going down and back, over every event: what a sawtooth is
// found in, whatever its period.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpumemprof {

struct Turn {
  uint64_t time_ns = 0;
  uint64_t bytes = 0;
};

/// Turns between which memory moves by more than 1/16 of the highest level so far. O(1) an event;
/// of very many turns the last kMost are kept.
class Turns {
 public:
  static constexpr size_t kMost = size_t{1} << 15;  // even: those dropped are whole cycles

  void add(uint64_t time_ns, uint64_t bytes, uint64_t peak_bytes) {
    if (is_rising_ ? bytes >= extreme_.bytes : bytes <= extreme_.bytes) {
      extreme_ = {time_ns, bytes};
      return;
    }
    const uint64_t moved = is_rising_ ? extreme_.bytes - bytes : bytes - extreme_.bytes;
    if (moved > peak_bytes / 16) turn(time_ns, bytes);
  }

  /// Oldest first, a highest level and a lowest one in turns. What memory did after the last is not
  /// in it.
  const std::vector<Turn>& all() const { return turns_; }

 private:
  void turn(uint64_t time_ns, uint64_t bytes) {
    if (turns_.size() == 2 * kMost) turns_.erase(turns_.begin(), turns_.begin() + kMost);
    turns_.push_back(extreme_);
    extreme_ = {time_ns, bytes};
    is_rising_ = !is_rising_;
  }

  std::vector<Turn> turns_;
  Turn extreme_;
  bool is_rising_ = true;
};

}  // namespace gpumemprof

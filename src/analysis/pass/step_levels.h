// Peak and final level of each step of the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gpumemprof {

/// One step of the program on one device; where there are too many, some that follow each other.
struct StepLevel {
  uint64_t step = 0;    ///< the program's number of the (last) step
  uint64_t end_ns = 0;  ///< when it ended
  uint64_t end_bytes = 0;
  uint64_t least_bytes = 0, most_bytes = 0;  ///< within, what was live when it began included
};

/// Every figure is exact. Of more than kMost steps neighbours are merged, so that memory is
/// bounded.
class StepLevels {
 public:
  static constexpr size_t kMost = size_t{1} << 14;  // even

  void add(const StepLevel& step);
  const std::vector<StepLevel>& levels() const { return levels_; }
  uint64_t steps() const { return steps_; }            ///< that have ended
  uint64_t steps_a_level() const { return a_level_; }  ///< the last level may have fewer

 private:
  std::vector<StepLevel> levels_;
  uint64_t a_level_ = 1, in_last_ = 0, steps_ = 0;
};

}  // namespace gpumemprof

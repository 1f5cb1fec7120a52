#include "analysis/pass/step_levels.h"

#include <algorithm>

namespace gpumemprof {
namespace {

void merge(const StepLevel& later, StepLevel* into) {
  const uint64_t least = std::min(into->least_bytes, later.least_bytes);
  const uint64_t most = std::max(into->most_bytes, later.most_bytes);
  *into = later;
  into->least_bytes = least, into->most_bytes = most;
}

}  // namespace

void StepLevels::add(const StepLevel& step) {
  ++steps_;
  if (!levels_.empty() && in_last_ < a_level_) {
    merge(step, &levels_.back());
    ++in_last_;
    return;
  }
  if (levels_.size() == kMost) {
    for (size_t i = 0; i < kMost; i += 2) {
      levels_[i / 2] = levels_[i];
      merge(levels_[i + 1], &levels_[i / 2]);
    }
    levels_.resize(kMost / 2);
    a_level_ *= 2;
  }
  levels_.push_back(step);
  in_last_ = 1;
}

}  // namespace gpumemprof

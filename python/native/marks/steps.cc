#include "native/marks/steps.h"

#include <algorithm>

namespace gpumemprof::python {
namespace {

constexpr size_t kMostOthers = 10000;

bool has(const std::vector<const void*>& list, const void* optimizer) {
  return std::find(list.begin(), list.end(), optimizer) != list.end();
}

}  // namespace

bool StepCounter::stepped(const void* optimizer, bool is_first_step) {
  const bool turn_is_over = turn_is_known_ && others_ == turn_;
  if (!first_ || (is_first_step && turn_is_over) || has(others_, optimizer) ||
      others_.size() >= kMostOthers) {
    *this = StepCounter();
    first_ = optimizer;
    return true;
  }
  if (optimizer == first_) {
    is_irregular_ |= is_waiting_ || (turn_is_known_ && others_ != turn_);
    turn_ = std::move(others_);
    others_.clear();
    turn_is_known_ = true;
    is_waiting_ = !is_irregular_ && !turn_.empty();
    return !is_waiting_;
  }
  others_.push_back(optimizer);
  if (!is_waiting_ || optimizer != turn_.back()) return false;
  is_waiting_ = false;
  return true;
}

void StepCounter::forget(const void* optimizer) {
  if (optimizer == first_ || has(turn_, optimizer) || has(others_, optimizer))
    *this = StepCounter();
}

}  // namespace gpumemprof::python

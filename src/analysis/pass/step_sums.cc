#include "analysis/pass/step_sums.h"

#include <algorithm>

#include "trace/event.h"

namespace gpumemprof {

StepSum& StepSums::at(int64_t step, uint64_t event) {
  if (step == kNoStep) return without_;
  if (auto known = steps_.find(step); known != steps_.end()) return known->second;
  if (steps_.size() >= kMost) return others_;
  StepSum& sum = steps_[step];
  sum.step = step, sum.first_event = event;
  return sum;
}

void StepSums::add_alloc(int64_t step, uint64_t event, uint64_t bytes) {
  StepSum& sum = at(step, event);
  ++sum.alloc_count;
  sum.alloc_bytes += bytes;
}

void StepSums::add_free(int64_t step, uint64_t event, uint64_t bytes) {
  StepSum& sum = at(step, event);
  ++sum.free_count;
  sum.freed_bytes += bytes;
}

std::vector<StepSum> StepSums::by_net_bytes() const {
  std::vector<StepSum> out;
  out.reserve(steps_.size());
  for (const auto& [step, sum] : steps_) out.push_back(sum);
  std::sort(out.begin(), out.end(), [](const StepSum& a, const StepSum& b) {
    if (a.net_bytes() != b.net_bytes()) return a.net_bytes() > b.net_bytes();
    return a.first_event != b.first_event ? a.first_event < b.first_event : a.step < b.step;
  });
  return out;
}

}  // namespace gpumemprof

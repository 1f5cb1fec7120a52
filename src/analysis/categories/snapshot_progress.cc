#include "analysis/categories/snapshot_progress.h"

#include <algorithm>

namespace gpumemprof {

SnapshotProgress::SnapshotProgress(const AllocatorSnapshot& snapshot, const AllocatorTrace& trace) {
  if (!trace.has_times) return;
  for (const Annotation& annotation : snapshot.annotations) {
    const std::string_view name = snapshot.tables.strings.get(annotation.name);
    Said what;
    if (name.starts_with("Optimizer.step#")) {
      what = Said::kStep;
    } else if (name.starts_with("Optimizer.zero_grad#")) {
      what = Said::kZeroGrad;
    } else if (name.starts_with("enumerate(DataLoader)#")) {
      what = Said::kLoad;
    } else {
      continue;
    }
    moments_.push_back({annotation.time_us, what, annotation.is_begin});
  }
  std::ranges::stable_sort(moments_, {}, &Moment::time_us);
}

void SnapshotProgress::take(const Moment& moment) {
  switch (moment.what) {
    case Said::kStep:
      if (moment.is_begin) {
        enter(WorkPhase::kOptimizer, false);
        ++open_steps_;
      } else if (open_steps_ > 0 && --open_steps_ == 0) {
        enter(WorkPhase::kNone, false);
      }
      return;
    case Said::kZeroGrad:
      return enter(open_steps_ > 0 ? WorkPhase::kOptimizer : WorkPhase::kNone, false);
    case Said::kLoad:
      open_loads_ = std::max(0, open_loads_ + (moment.is_begin ? 1 : -1));
      return;
  }
}

void SnapshotProgress::advance_to(int64_t time_us) {
  for (; next_ < moments_.size() && moments_[next_].time_us <= time_us; ++next_) {
    take(moments_[next_]);
  }
}

void SnapshotProgress::finish() { advance_to(INT64_MAX); }

void SnapshotProgress::enter(WorkPhase phase, bool is_recomputing) {
  if (phase == WorkPhase::kDataLoading) return;
  if (is_recomputing_ && !is_recomputing) ++counts_.recomputations;
  is_recomputing_ = is_recomputing;
  if (phase == phase_) return;
  if (phase_ == WorkPhase::kBackward) ++counts_.backwards_ended;
  if (phase_ == WorkPhase::kOptimizer) ++counts_.steps;
  if (phase == WorkPhase::kForward) ++counts_.calls;
  if (phase == WorkPhase::kBackward) {
    ++counts_.backwards_begun;
    calls_before_.push_back(counts_.calls);
  }
  phase_ = phase;
}

}  // namespace gpumemprof

#include "recording/standing_marks.h"

#include <algorithm>

namespace gpumemprof {

void StandingMarks::apply(const EventBatch& batch) {
  if (batch.marks.empty() && blocks_.empty()) return;
  auto mark = batch.marks.begin();
  for (size_t i = 0; i < batch.size(); ++i) {
    for (; mark != batch.marks.end() && mark->before_event <= i; ++mark) take(*mark);
    const bool is_other = !is_free(batch.action[i]) && batch.action[i] != Action::kAlloc;
    if (!is_other && !blocks_.empty()) blocks_.erase(batch.address[i]);
  }
  for (; mark != batch.marks.end(); ++mark) take(*mark);
}

void StandingMarks::take(const Mark& mark) {
  constexpr size_t kMostModules = 1u << 20;
  const uint64_t order = ++count_;
  switch (mark.kind) {
    case MarkKind::kSaved: {
      OfBlock& block = blocks_[mark.address];
      const uint64_t flags = block.is_saved ? block.saved.value : 0;
      block.saved = mark, block.saved.value |= flags;
      block.is_saved = true, block.saved_order = order;
      return;
    }
    case MarkKind::kRole: {
      OfBlock& block = blocks_[mark.address];
      block.role = mark, block.has_role = true, block.role_order = order;
      return;
    }
    case MarkKind::kModule:
      if (modules_.size() < kMostModules) modules_.push_back({order, mark});
      return;
    case MarkKind::kStep:
      step_ = {order, mark};
      return;
    case MarkKind::kPhaseBegin:
      phases_[mark.address] = {order, mark};
      return;
    case MarkKind::kPhaseEnd:
      phases_.erase(mark.address);
      return;
  }
}

std::vector<Mark> StandingMarks::now() const {
  std::vector<Said> said = modules_;
  if (step_.order != 0) said.push_back(step_);
  for (const auto& [number, phase] : phases_) said.push_back(phase);
  for (const auto& [address, block] : blocks_) {
    if (block.is_saved) said.push_back({block.saved_order, block.saved});
    if (block.has_role) said.push_back({block.role_order, block.role});
  }
  std::sort(said.begin(), said.end(),
            [](const Said& a, const Said& b) { return a.order < b.order; });
  std::vector<Mark> marks;
  marks.reserve(said.size());
  for (const Said& one : said) {
    marks.push_back(one.mark);
    marks.back().before_event = 0;
  }
  return marks;
}

}  // namespace gpumemprof

#include "recording/standing_marks.h"

#include <algorithm>

namespace gpumemprof {

void StandingMarks::apply(const EventBatch& batch) {
  if (batch.marks.empty() && blocks_.empty()) return;
  auto mark = batch.marks.begin();
  for (size_t i = 0; i < batch.size(); ++i) {
    for (; mark != batch.marks.end() && mark->before_event <= i; ++mark) take(*mark);
    const bool is_other = !is_free(batch.action[i]) && batch.action[i] != Action::kAlloc;
    if (!is_other && !blocks_.empty()) end_life(batch.address[i]);
  }
  for (; mark != batch.marks.end(); ++mark) take(*mark);
}

/// A role that holds is one of the address, until it is taken back.
void StandingMarks::end_life(uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return;
  if (hold_.order == 0 || !found->second.has_role) {
    blocks_.erase(found);
  } else {
    found->second.is_saved = false;
  }
}

void StandingMarks::take(const Mark& mark) {
  constexpr size_t kMostModules = 1u << 20;
  const uint64_t order = ++count_;
  switch (mark.kind) {
    case MarkKind::kCopied:  // of two blocks, of which one was made a moment ago
      return;
    case MarkKind::kSaved: {
      OfBlock& block = blocks_[mark.address];
      const uint64_t flags = block.is_saved ? block.saved.value : 0;
      block.saved = mark, block.saved.value |= flags;
      block.is_saved = true, block.saved_order = order;
      return;
    }
    case MarkKind::kRole: {
      if (mark.address == 0) {
        if (mark.value == gpumemprof::kRolesHold) hold_ = {order, mark};
        return;
      }
      OfBlock& block = blocks_[mark.address];
      if (mark.value == kNoRole && !block.is_saved) {
        blocks_.erase(mark.address);
        return;
      }
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
  if (hold_.order != 0) said.push_back(hold_);
  for (const auto& [number, phase] : phases_) said.push_back(phase);
  for (const auto& [address, block] : blocks_) {
    if (block.is_saved) said.push_back({block.saved_order, block.saved});
    const bool is_told = block.has_role && block.role.value != kNoRole;
    if (is_told) said.push_back({block.role_order, block.role});
  }
  std::ranges::sort(said, {}, &Said::order);
  std::vector<Mark> marks;
  marks.reserve(said.size());
  for (const Said& one : said) {
    marks.push_back(one.mark);
    marks.back().before_event = 0;
  }
  return marks;
}

}  // namespace gpumemprof

#include "page/block_table.h"

#include <algorithm>

namespace gpumemprof {

void SparseSeries::add(uint32_t moment, uint64_t value) {
  if (!values.empty() && values.back() == value) return;
  if (!moments.empty() && moments.back() == moment) {
    values.back() = value;
    return;
  }
  moments.push_back(moment), values.push_back(value);
}

uint64_t SparseSeries::at(uint32_t moment) const {
  const auto after = std::ranges::upper_bound(moments, moment);
  return after == moments.begin() ? 0 : values[static_cast<size_t>(after - moments.begin()) - 1];
}

uint32_t BlockTable::replaced_at(uint32_t moment) const {
  if (replaced.empty()) return kNone;
  const auto found = std::ranges::lower_bound(replaced, moment, {}, &Replaced::moment);
  return found != replaced.end() && found->moment == moment ? found->block : kNone;
}

uint64_t BlockTable::added_bytes(uint32_t moment) const {
  switch (change(moment)) {
    case BlockChange::kAlloc: {
      // Where a free was missed, what was there has ended with it.
      const uint32_t block = changed(moment);
      const uint32_t ended = replaced_at(moment);
      return size_bytes[block] - (ended == kNone ? 0 : size_bytes[ended]);
    }
    case BlockChange::kFree:
      return 0 - size_bytes[changed(moment)];
    default:
      return moment == 0 ? earlier_bytes : 0;
  }
}

uint64_t BlockTable::level_at(uint32_t moment) const {
  return levels.at(moment, [this](uint32_t m) { return added_bytes(m); });
}

uint32_t BlockTable::kind_at(uint32_t block, uint32_t moment) const {
  const uint32_t last = kind[block];
  if ((last & kChangesKind) == 0) return last;
  auto part = std::ranges::lower_bound(earlier_kinds, block, {}, &EarlierKind::block);
  for (; part != earlier_kinds.end() && part->block == block; ++part) {
    if (moment < part->until) return part->kind;
  }
  return last & ~kChangesKind;
}

bool BlockTable::is_pending(uint32_t block, uint32_t moment) const {
  const auto first = std::ranges::lower_bound(waits, block, {}, &Wait::block);
  for (auto wait = first; wait != waits.end() && wait->block == block; ++wait) {
    if (wait->from <= moment && moment < wait->to) return true;
  }
  return false;
}

uint32_t BlockTable::started_by(uint32_t moment) const {
  return static_cast<uint32_t>(std::ranges::upper_bound(start, moment) - start.begin());
}

void BlockTable::finish() {
  levels.finish();
  latest_end.assign((blocks() + kChunk - 1) / kChunk, 0);
  for (uint32_t b = 0; b < blocks(); ++b)
    latest_end[b / kChunk] = std::max(latest_end[b / kChunk], end[b]);
  std::ranges::stable_sort(waits, {}, &Wait::block);
  std::ranges::stable_sort(earlier_kinds, [](const EarlierKind& a, const EarlierKind& b) {
    return a.block != b.block ? a.block < b.block : a.until < b.until;
  });
  peak = levels.range(0, moments(), [this](uint32_t m) { return added_bytes(m); }).most_at;
}

}  // namespace gpumemprof

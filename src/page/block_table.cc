#include "page/block_table.h"

#include <algorithm>
#include <utility>

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

uint32_t BlockTable::first_with(uint64_t level) const {
  return levels.first_with(level, [this](uint32_t m) { return added_bytes(m); });
}

uint32_t BlockTable::kind_at(uint32_t block, uint32_t moment) const {
  if (!changes_kind(block)) return kind_in_end(block);
  auto part = std::ranges::lower_bound(earlier_kinds, block, {}, &EarlierKind::block);
  for (; part != earlier_kinds.end() && part->block == block; ++part) {
    if (moment < part->until) return part->kind;
  }
  return kind_in_end(block);
}

bool BlockTable::is_pending(uint32_t block, uint32_t moment) const {
  const auto first = std::ranges::lower_bound(waits, block, {}, &Wait::block);
  for (auto wait = first; wait != waits.end() && wait->block == block; ++wait) {
    if (wait->from <= moment && moment < wait->to) return true;
  }
  return false;
}

uint32_t BlockTable::moment_at(uint64_t time_ns) const {
  return static_cast<uint32_t>(times.lower_bound(time_ns));
}

uint32_t BlockTable::started_by(uint32_t moment) const {
  return static_cast<uint32_t>(start.upper_bound(moment));
}

void BlockTable::find_latest_ends() {
  latest_end.assign((blocks() + kChunk - 1) / kChunk, 0);
  for (uint32_t b = 0; b < blocks(); ++b)
    latest_end[b / kChunk] = std::max(latest_end[b / kChunk], end[b]);
}

void BlockTable::finish() {
  levels.finish();
  find_latest_ends();
  std::ranges::stable_sort(waits, {}, &Wait::block);
  std::ranges::stable_sort(earlier_kinds, [](const EarlierKind& a, const EarlierKind& b) {
    return a.block != b.block ? a.block < b.block : a.until < b.until;
  });
  peak = levels.range(0, moments(), [this](uint32_t m) { return added_bytes(m); }).most_at;
}

bool BlockTable::read(uint32_t stacks) {
  const size_t block_count = size_bytes.size(), moment_count = changes.size();
  if (block_count > kMostBlocks || moment_count == 0 || moment_count > kMostMoments) return false;
  const auto has_one_each = [&](size_t size) { return size == block_count; };
  const auto below = [](size_t limit) { return [limit](auto value) { return value < limit; }; };
  const auto is_end = [&](uint32_t moment) { return moment < moment_count || moment == kNone; };
  const auto is_block = below(block_count), is_moment = below(moment_count);
  const bool columns_are_sound = size_bytes.is_sound() && address.is_sound() && start.is_sound() &&
                                 stack.is_sound() && thread.is_sound() && times.is_sound();
  if (!columns_are_sound) return false;
  const bool columns_fit =
      has_one_each(address.size()) && has_one_each(start.size()) && has_one_each(end.size()) &&
      has_one_each(stack.size()) && (kind.empty() || has_one_each(kind.size())) &&
      (thread.empty() || has_one_each(thread.size())) &&
      (stream.empty() || has_one_each(stream.size())) && earlier_blocks <= block_count;
  if (!columns_fit || kinds.empty()) return false;
  uint32_t before = 0;
  const auto ascends = [&](uint32_t moment) { return std::exchange(before, moment) <= moment; };
  const bool blocks_are_sound =
      start.all_of(ascends) && (start.empty() || is_moment(start[start.size() - 1])) &&
      std::ranges::all_of(end, is_end) &&
      stack.all_of(below(stacks)) &&
      std::ranges::all_of(stream, below(streams.size())) &&
      std::ranges::all_of(kind, [&](uint32_t of) { return (of & ~kChangesKind) < kinds.size(); });
  const bool moments_are_sound =
      times.size() == moment_count - 1 && levels.is_sound() &&
      levels.size() == moment_count && peak < moment_count &&
      std::ranges::all_of(changes, [&](uint32_t step) {
        return static_cast<BlockChange>(step >> 30) == BlockChange::kOther ||
               is_block(step & kMostBlocks);
      });
  if (!blocks_are_sound || !moments_are_sound) return false;
  const auto is_series = [](const SparseSeries& series) {
    return series.moments.size() == series.values.size() && std::ranges::is_sorted(series.moments);
  };
  const bool rest_is_sound =
      is_series(reserved) && is_series(pending) &&
      std::ranges::is_sorted(earlier_kinds, {}, &EarlierKind::block) &&
      std::ranges::all_of(earlier_kinds,
                          [&](const EarlierKind& part) {
                            return is_block(part.block) && part.kind < kinds.size() &&
                                   is_end(part.until);
                          }) &&
      std::ranges::all_of(refused, is_moment, &RefusedMoment::moment) &&
      std::ranges::all_of(segments, is_moment, &SegmentChange::moment) &&
      std::ranges::all_of(waits, is_block, &Wait::block) &&
      std::ranges::all_of(replaced, is_block, &Replaced::block) &&
      std::ranges::is_sorted(replaced, {}, &Replaced::moment);
  if (!rest_is_sound) return false;
  levels.finish();
  find_latest_ends();
  return true;
}

}  // namespace gpumemprof

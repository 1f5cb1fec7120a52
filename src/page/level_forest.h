// The minimum, maximum and last value of a series over any range of its moments, in O(log n).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/growing_column.h"

namespace gpumemprof {

/// Minimum, maximum and last value are kept per 32 moments and combined pairwise: 26 bytes per 32
/// moments in leaves, as much again above. Within 32 moments the caller provides the steps.
class LevelForest {
 public:
  static constexpr uint32_t kLeaf = 32;

  void add(uint64_t level);
  /// After the last.
  void finish();
  uint32_t size() const { return size_; }
  /// Writes it, or reads it, as far as finish() does not make it (index_archive.h).
  template <class Archive>
  void archive(Archive& archive) {
    archive.number(size_), archive.number(open_.least), archive.number(open_.most);
    archive.array(heights_[0]), archive.array(last_);
  }
  bool is_sound() const {
    return heights_[0].size() == size_ / kLeaf && last_.size() == heights_[0].size();
  }

  struct Range {
    uint64_t least = UINT64_MAX, most = 0;
    uint32_t most_at = 0;  ///< the first moment of the highest level
  };
  /// Over the moments [from, to), which is not empty. `step(moment)` is the change of the level at
  /// a moment, modulo 2^64.
  template <class Step>
  Range range(uint32_t from, uint32_t to, const Step& step) const;
  template <class Step>
  uint64_t at(uint32_t moment, const Step& step) const;
  /// The first moment with this level; size() where there is none. Leaves are looked into only where
  /// it is between their least and most.
  template <class Step>
  uint32_t first_with(uint64_t level, const Step& step) const;

 private:
  struct Node {
    uint64_t least, most;
  };
  /// The first leaf in [first, last) whose highest level is `most`, below node `index` at a height.
  uint32_t first_leaf_of(uint64_t most, size_t height, uint32_t index) const;
  template <class Step>
  void scan(uint32_t from, uint32_t to, const Step& step, Range* range) const;
  void take(size_t height, uint32_t index, uint32_t* best_height, uint32_t* best_index,
            Range* range) const;

  uint32_t size_ = 0;
  Node open_{UINT64_MAX, 0};
  std::vector<GrowingColumn<Node>> heights_{1};  // [0]: leaves
  GrowingColumn<uint64_t> last_;                 // of each leaf
};

inline void LevelForest::add(uint64_t level) {
  open_.least = std::min(open_.least, level);
  open_.most = std::max(open_.most, level);
  if (++size_ % kLeaf == 0) {
    heights_[0].push_back(open_), last_.push_back(level);
    open_ = {UINT64_MAX, 0};
  }
}

template <class Step>
uint64_t LevelForest::at(uint32_t moment, const Step& step) const {
  const uint32_t leaf = moment / kLeaf;
  if (moment % kLeaf == kLeaf - 1 && leaf < last_.size()) return last_[leaf];
  uint64_t level = leaf == 0 ? 0 : last_[leaf - 1];
  for (uint32_t m = leaf * kLeaf; m <= moment; ++m) level += step(m);
  return level;
}

template <class Step>
uint32_t LevelForest::first_with(uint64_t level, const Step& step) const {
  for (uint32_t leaf = 0; leaf * kLeaf < size_; ++leaf) {
    const Node& node = leaf < last_.size() ? heights_[0][leaf] : open_;
    if (level < node.least || level > node.most) continue;
    uint64_t now = leaf == 0 ? 0 : last_[leaf - 1];
    for (uint32_t m = leaf * kLeaf; m < std::min(size_, (leaf + 1) * kLeaf); ++m) {
      now += step(m);
      if (now == level) return m;
    }
  }
  return size_;
}

template <class Step>
void LevelForest::scan(uint32_t from, uint32_t to, const Step& step, Range* range) const {
  if (from >= to) return;
  uint64_t level = at(from, step);
  for (uint32_t m = from;;) {
    range->least = std::min(range->least, level);
    if (level > range->most) range->most = level, range->most_at = m;
    if (++m == to) return;
    level += step(m);
  }
}

template <class Step>
LevelForest::Range LevelForest::range(uint32_t from, uint32_t to, const Step& step) const {
  Range whole;
  whole.most_at = from;
  const uint32_t first = (from + kLeaf - 1) / kLeaf, last = to / kLeaf;  // whole leaves
  if (first >= last) {
    scan(from, to, step, &whole);
    return whole;
  }
  scan(from, first * kLeaf, step, &whole);
  // Left to right, so that the first of equal ones is found.
  uint32_t at = first;
  uint32_t best_height = 0, best_index = UINT32_MAX;
  while (at < last) {
    size_t height = 0;
    while (height + 1 < heights_.size() && at % (uint32_t{2} << height) == 0 &&
           at + (uint32_t{2} << height) <= last &&
           (at >> (height + 1)) < heights_[height + 1].size())
      ++height;
    take(height, at >> height, &best_height, &best_index, &whole);
    at += uint32_t{1} << height;
  }
  if (best_index != UINT32_MAX) {
    const uint32_t leaf = first_leaf_of(whole.most, best_height, best_index);
    Range in;
    scan(leaf * kLeaf, (leaf + 1) * kLeaf, step, &in);
    whole.most_at = in.most_at;
  }
  scan(last * kLeaf, to, step, &whole);
  return whole;
}

}  // namespace gpumemprof

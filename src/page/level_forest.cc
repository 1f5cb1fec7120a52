#include "page/level_forest.h"

namespace gpumemprof {

void LevelForest::finish() {
  heights_.resize(1);
  // Only pairs become a node; a single remainder is found one height below.
  while (heights_.back().size() > 1) {
    const GrowingColumn<Node>& below = heights_.back();
    GrowingColumn<Node> above;
    above.reserve(below.size() / 2);
    for (size_t i = 0; i + 1 < below.size(); i += 2) {
      above.push_back({std::min(below[i].least, below[i + 1].least),
                       std::max(below[i].most, below[i + 1].most)});
    }
    heights_.push_back(std::move(above));
  }
}

void LevelForest::take(size_t height, uint32_t index, uint32_t* best_height, uint32_t* best_index,
                       Range* range) const {
  const Node& node = heights_[height][index];
  range->least = std::min(range->least, node.least);
  if (node.most <= range->most) return;
  range->most = node.most;
  *best_height = static_cast<uint32_t>(height), *best_index = index;
}

uint32_t LevelForest::first_leaf_of(uint64_t most, size_t height, uint32_t index) const {
  for (; height > 0; --height) {
    index *= 2;
    if (heights_[height - 1][index].most != most) ++index;
  }
  return index;
}

}  // namespace gpumemprof

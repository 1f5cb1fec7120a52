#include "page/time_column.h"

#include <algorithm>

namespace gpumemprof {

void TimeColumn::close() {
  const auto [least, most] = std::ranges::minmax(pending_);
  if (most - least <= UINT32_MAX) {
    chunks_.push_back({least, narrow_.size(), kNarrow});
    for (const uint64_t time : pending_) narrow_.push_back(static_cast<uint32_t>(time - least));
  } else {
    chunks_.push_back({least, 0, wide_.size()});
    wide_.insert(wide_.end(), pending_.begin(), pending_.end());
  }
  pending_.clear();
}

}  // namespace gpumemprof

// From which size on a finding of a replay is worth telling.
#pragma once

#include <cstdint>

#include "base/size.h"

namespace gpumemprof {

inline constexpr uint64_t kLeastWorthBytes = 32 * kMiB;
inline constexpr uint64_t kWorthShare = 20;  ///< one 20th: 5 %

/// `share`: one part in so many of `of`.
inline bool is_worth(uint64_t bytes, uint64_t of, uint64_t share = kWorthShare) {
  return bytes >= kLeastWorthBytes && bytes >= of / share;
}

/// a - b, 0 where b is more.
inline uint64_t less_or_none(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

}  // namespace gpumemprof

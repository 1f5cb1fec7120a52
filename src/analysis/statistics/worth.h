// From which size on a finding is worth telling.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/size.h"

namespace gpumemprof {

inline constexpr uint64_t kLeastWorthBytes = 32 * kMiB;
inline constexpr uint64_t kWorthShare = 20;  ///< one 20th: 5 %

/// `share`: one part in so many of `of`.
inline bool is_worth(uint64_t bytes, uint64_t of, uint64_t share = kWorthShare) {
  return bytes >= kLeastWorthBytes && bytes >= of / share;
}

/// What grows costs what it holds, or what it would hold after a long run, whichever is more.
inline constexpr double kLongRunSteps = 10'000;
inline double cost_of_growth(double held_bytes, double bytes_a_step) {
  return std::max(held_bytes, bytes_a_step * kLongRunSteps);
}
/// Whether that is more than an "info". `peak_bytes`: of the device.
inline constexpr double kLeastWarningShare = 0.01;
inline bool is_worth_warning(double cost_bytes, uint64_t peak_bytes,
                             double least_share = kLeastWarningShare) {
  constexpr double kLeastBytes = kMiB;
  return cost_bytes >= kLeastBytes && cost_bytes >= least_share * static_cast<double>(peak_bytes);
}

/// a - b, 0 where b is more.
inline uint64_t less_or_none(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

}  // namespace gpumemprof

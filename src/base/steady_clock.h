#pragma once

#include <chrono>
#include <cstdint>

namespace gpumemprof {

inline constexpr int64_t kSecondNs = 1'000'000'000;

/// CLOCK_MONOTONIC in nanoseconds.
inline int64_t steady_now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace gpumemprof

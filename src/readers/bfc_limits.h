// What the readers of TensorFlow's allocator take of a dump, be it in protobuf or in a log.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpumemprof {

inline constexpr size_t kMostBfcNameBytes = 1024;
inline constexpr size_t kMostBfcOperations = 1 << 16;
/// Sums and differences of sizes must not wrap, whatever a file claims.
inline constexpr uint64_t kMostBfcBytes = uint64_t{1} << 62;

}  // namespace gpumemprof

// Sizes that are known up to the rounding of whoever printed them.
#pragma once

#include <cstdint>
#include <string>

#include "readers/printed_size.h"

namespace gpumemprof {

/// All sizes from `least` to `most`.
struct ByteRange {
  uint64_t least = 0, most = 0;
};
ByteRange range_of(const PrintedSize& size);
inline ByteRange exactly(uint64_t bytes) { return {bytes, bytes}; }

/// Sums stop at 2^64 - 1, differences at 0.
ByteRange operator+(const ByteRange& a, const ByteRange& b);
ByteRange operator-(const ByteRange& a, const ByteRange& b);
inline bool surely_less(const ByteRange& a, const ByteRange& b) { return a.most < b.least; }
inline bool surely_at_least(const ByteRange& a, const ByteRange& b) { return a.least >= b.most; }

/// "1.95 GiB", or "1.94 GiB to 1.96 GiB" where rounding shows.
std::string range_text(const ByteRange& range);

/// No host or device that programs ordinarily run on has as much: a product of sizes, or a
/// broadcast.
bool is_wrong_size(const PrintedSize& requested);

}  // namespace gpumemprof

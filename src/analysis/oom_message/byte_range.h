// Sizes that are known up to the rounding of whoever printed them.
#pragma once

#include <cstdint>
#include <string>

#include "readers/oom_message.h"
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

// Requests that no machine serves, and refusals by a host: the same for every framework.

/// No host or device that programs ordinarily run on has as much: a product of sizes, or a
/// broadcast.
bool is_wrong_size(const PrintedSize& requested);
bool is_wrong_size(const OomMessage& message);

/// Who refused, where the allocator or the wording tells it.
enum class RefusedBy : uint8_t { kUnknown, kHost, kProbablyHost };
RefusedBy refused_by(const OomMessage& message);

/// One sentence; is_wrong_size() is true.
std::string wrong_size_summary(const OomMessage& message);
/// What to do about it.
std::string wrong_size_advice(const OomMessage& message);

inline constexpr char kHostSaysNoNumbers[] =
    "The message does not say how much is used, or which limit there is.";
inline constexpr char kHostRefused[] =
    "The host refused memory: it has too little, or a limit (ulimit -v) was reached.";
inline constexpr char kProbablyHostRefused[] =
    "Probably the host refused memory: it has too little, or a limit (ulimit -v) was reached.";

}  // namespace gpumemprof

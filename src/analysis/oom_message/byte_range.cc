#include "analysis/oom_message/byte_range.h"

#include "base/size.h"

namespace gpumemprof {
namespace {

uint64_t add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }
uint64_t subtract(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

}  // namespace

ByteRange range_of(const PrintedSize& size) { return {size.least_bytes, size.most_bytes}; }

ByteRange operator+(const ByteRange& a, const ByteRange& b) {
  return {add(a.least, b.least), add(a.most, b.most)};
}

ByteRange operator-(const ByteRange& a, const ByteRange& b) {
  return {subtract(a.least, b.most), subtract(a.most, b.least)};
}

std::string range_text(const ByteRange& range) {
  const std::string least = format_bytes(range.least), most = format_bytes(range.most);
  return least == most ? least : least + " to " + most;
}

bool is_wrong_size(const PrintedSize& requested) {
  constexpr uint64_t kMostOrdinary = 1ull << 40;
  return requested.least_bytes >= kMostOrdinary;
}

}  // namespace gpumemprof

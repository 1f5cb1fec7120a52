// Numbers of a pickle: little-endian, two's complement, of any length.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace gpumemprof::pickle {

template <class T>
T load(const uint8_t* at) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

inline double load_big_endian_double(const uint8_t* at) {
  return std::bit_cast<double>(__builtin_bswap64(load<uint64_t>(at)));
}

struct Integer {
  enum Fit : uint8_t { kSigned, kUnsigned, kNeither } fit = kNeither;
  uint64_t bits = 0;
};

/// A number of up to 8 bytes. 8 bytes from `at` must be readable.
inline int64_t short_integer(const uint8_t* at, size_t size) {
  if (size == 0) return 0;
  const int shift = static_cast<int>(64 - 8 * size);
  return static_cast<int64_t>(load<uint64_t>(at) << shift) >> shift;
}

/// A number of any length, from its lowest byte on. Python writes no byte too many, but others may.
inline Integer any_integer(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return {Integer::kSigned, 0};
  const bool negative = bytes.back() >> 7;
  uint64_t low = negative ? ~uint64_t{0} : 0;
  std::memcpy(&low, bytes.data(), bytes.size() < 8 ? bytes.size() : 8);
  for (size_t i = 8; i < bytes.size(); ++i) {
    if (bytes[i] != (negative ? 0xff : 0)) return {};
  }
  if (negative == (low >> 63 != 0)) return {Integer::kSigned, low};
  return negative ? Integer{} : Integer{Integer::kUnsigned, low};
}

}  // namespace gpumemprof::pickle

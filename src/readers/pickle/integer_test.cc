#include "readers/pickle/integer.h"

#include <gtest/gtest.h>

#include <string>

namespace gpumemprof::pickle {
namespace {

/// The low `size` bytes of a number whose bytes above the eighth are all its sign.
std::string bytes_of(int64_t value, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) {
    bytes += static_cast<char>(i < 8 ? value >> 8 * i : value >> 63);
  }
  return bytes;
}

Integer read(const std::string& bytes) {
  return any_integer({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

TEST(PickleInteger, EveryLengthThatHoldsAValueGivesIt) {
  for (int64_t value : {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{127}, int64_t{-128},
                        int64_t{1} << 46, -(int64_t{1} << 46), INT64_MAX, INT64_MIN}) {
    for (size_t size = 1; size < 20; ++size) {
      const int shift = static_cast<int>(64 - 8 * std::min<size_t>(size, 8));
      if (static_cast<int64_t>(static_cast<uint64_t>(value) << shift) >> shift != value) continue;
      const std::string bytes = bytes_of(value, size);
      const Integer number = read(bytes);
      EXPECT_EQ(number.fit, Integer::kSigned) << value << ' ' << size;
      EXPECT_EQ(static_cast<int64_t>(number.bits), value) << size;
      if (size > 8) continue;
      uint8_t padded[16] = {0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa};  // what follows it
      std::memcpy(padded, bytes.data(), size);
      EXPECT_EQ(short_integer(padded, size), value) << size;
    }
  }
}

TEST(PickleInteger, NineBytesMayHoldWhatOnlyFitsWithoutASign) {
  const Integer most = read(std::string(8, '\xff') + std::string(1, '\0'));
  EXPECT_EQ(most.fit, Integer::kUnsigned);
  EXPECT_EQ(most.bits, UINT64_MAX);
  const Integer least = read(std::string(7, '\0') + "\x80" + std::string(1, '\0'));
  EXPECT_EQ(least.fit, Integer::kUnsigned);
  EXPECT_EQ(least.bits, uint64_t{1} << 63);
}

TEST(PickleInteger, WhatFitsNeitherIsSaidToBe) {
  EXPECT_EQ(read(std::string(8, '\0') + "\x01").fit, Integer::kNeither);
  EXPECT_EQ(read(std::string(8, '\0') + "\xff").fit, Integer::kNeither);
  EXPECT_EQ(read(std::string(200, '\x7f')).fit, Integer::kNeither);
}

TEST(PickleInteger, NoBytesAreZero) {
  EXPECT_EQ(read("").bits, 0u);
  const uint8_t none[8] = {0xff};
  EXPECT_EQ(short_integer(none, 0), 0);
}

TEST(PickleInteger, DoublesAreBigEndian) {
  const uint8_t one_and_a_half[] = {0x3f, 0xf8, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(load_big_endian_double(one_and_a_half), 1.5);
}

}  // namespace
}  // namespace gpumemprof::pickle

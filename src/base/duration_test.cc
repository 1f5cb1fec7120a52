#include "base/duration.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpumemprof {
namespace {

TEST(Duration, HasTheUnitThatItsSizeCallsFor) {
  EXPECT_EQ(format_duration(999), "999 ns");
  EXPECT_EQ(format_duration(1'000'000), "1 ms");
  EXPECT_EQ(format_duration(12'500'000), "12.5 ms");
  EXPECT_EQ(format_duration(3'214'000'000), "3.214 s");
  EXPECT_EQ(format_duration(125'000'000'000), "2 min 05 s");
  EXPECT_EQ(format_duration(3'720'000'000'000), "1 h 02 min");
}

TEST(Duration, SecondsReadAsTheSameNanosecondsDo) {
  EXPECT_EQ(format_seconds(0.0125), "12.5 ms");
  EXPECT_EQ(format_seconds(60), "1 min 00 s");
  EXPECT_EQ(format_seconds(-1), "0 ns");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::quiet_NaN()), "0 ns");
  EXPECT_EQ(format_seconds(std::numeric_limits<double>::infinity()), "2500000 h 00 min");
}

}  // namespace
}  // namespace gpumemprof

#include "base/size.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(ParseSize, PlainNumbersAreBytes) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("1048576"), 1048576u);
  EXPECT_EQ(parse_size("17B"), 17u);
}

TEST(ParseSize, IecAndBareLettersAreBinary) {
  EXPECT_EQ(parse_size("24GiB"), 24ull << 30);
  EXPECT_EQ(parse_size("24G"), 24ull << 30);
  EXPECT_EQ(parse_size("24gib"), 24ull << 30);
  EXPECT_EQ(parse_size("3k"), 3072u);
  EXPECT_EQ(parse_size("2Ti"), 2ull << 40);
  EXPECT_EQ(parse_size("1 EiB"), 1ull << 60);
}

TEST(ParseSize, UnitsWithBAreDecimal) {
  EXPECT_EQ(parse_size("24GB"), 24'000'000'000u);
  EXPECT_EQ(parse_size("1kB"), 1000u);
  EXPECT_EQ(parse_size("5PB"), 5'000'000'000'000'000u);
}

TEST(ParseSize, FractionsRoundDownToWholeBytes) {
  EXPECT_EQ(parse_size("1.5GiB"), 3ull << 29);
  EXPECT_EQ(parse_size("0.1KiB"), 102u);  // 102.4
  EXPECT_EQ(parse_size("0.0000000001G"), 0u);
}

TEST(ParseSize, TheLargestNumberIsTakenAndOneMoreRefused) {
  EXPECT_EQ(parse_size("18446744073709551615"), UINT64_MAX);
  EXPECT_FALSE(parse_size("18446744073709551616"));
  EXPECT_FALSE(parse_size("16EiB"));
  EXPECT_EQ(parse_size("15EiB"), 15ull << 60);
}

TEST(ParseSize, EverythingElseIsAUsageError) {
  for (const char* bad : {"", " ", "G", "-1", "+1", "1.", ".5G", "1.5", "1..2G", "12Q", "1 2",
                          "0x10", "1e3", "24GiBs", "nan"}) {
    auto size = parse_size(bad);
    ASSERT_FALSE(size) << bad;
    EXPECT_EQ(size.error().code, ErrorCode::kUsage) << bad;
  }
}

TEST(FormatBytes, ThreeSignificantDigitsInBinaryUnits) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(24ull << 30), "24.0 GiB");
  EXPECT_EQ(format_bytes(1000ull << 20), "1000 MiB");
  EXPECT_EQ(format_bytes((1ull << 30) - 1), "1.00 GiB");  // never "1024 MiB"
  EXPECT_EQ(format_bytes(UINT64_MAX), "16.0 EiB");
}

TEST(FormatBytes, WhatIsNeededIsRoundedUp) {
  EXPECT_EQ(format_bytes_up(0), "0 B");
  EXPECT_EQ(format_bytes_up(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes_up(1025), "1.01 KiB");
  EXPECT_EQ(format_bytes(4970 * kMiB), "4.85 GiB");      // 4.8535 GiB
  EXPECT_EQ(format_bytes_up(4970 * kMiB), "4.86 GiB");
  EXPECT_EQ(format_bytes_up((10ull << 30) - 1), "10.0 GiB");
  EXPECT_EQ(format_bytes_up((100ull << 30) - 1), "100 GiB");
  EXPECT_EQ(format_bytes_up((1023ull << 20) + 1), "1.00 GiB");  // never "1024 MiB"
}

TEST(Size, ACapacityWhoseUnitWasForgottenIsRefused) {
  EXPECT_EQ(parse_capacity("21GiB"), 21ull << 30);
  EXPECT_EQ(parse_capacity("700KiB"), 700u << 10);
  EXPECT_EQ(parse_capacity("1048576"), kMiB);
  for (const char* text : {"21", "0", "1048575", " 80 "}) EXPECT_FALSE(parse_capacity(text)) << text;
  EXPECT_EQ(parse_capacity("21").error().message,
            R"("21" is a number of bytes: write a unit, such as 21GiB)");
}

}  // namespace
}  // namespace gpumemprof

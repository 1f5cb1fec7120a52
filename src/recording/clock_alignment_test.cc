#include "recording/clock_alignment.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

/// A clock that is `ahead_ns` ahead of the true time, and the collectives that its ranks took part
/// in: {last begin, first end} in true time.
ClockSamples clock_ahead(int64_t ahead_ns, int64_t wall_error_ns,
                         const std::vector<std::pair<uint64_t, uint64_t>>& collectives) {
  ClockSamples out{.wall_offset_ns = 1'000 * kSecond - ahead_ns + wall_error_ns};
  uint64_t number = 1;
  for (const auto& [begin, end] : collectives) {
    const auto shifted = [&](uint64_t time) { return time + static_cast<uint64_t>(ahead_ns); };
    out.collectives[number++ << 4] = {shifted(begin), shifted(end)};
  }
  return out;
}

TEST(ClockAlignment, OneClockIsItsOwn) {
  const auto out = align_clocks(std::vector{clock_ahead(0, 0, {})});
  EXPECT_EQ(out[0].by, MachineClock::Aligned::kIsTheirs);
  EXPECT_EQ(out[0].shift_ns, 0);
  EXPECT_EQ(out[0].error_ns, 0u);
}

TEST(ClockAlignment, CollectivesBoundTheDistanceFromBothSides) {
  // Rank a is in it from 1,000 to 1,300, rank b from 1,100 to 1,310: each leaves after both entered.
  const auto out = align_clocks(std::vector{clock_ahead(5 * kSecond, 0, {{1'000, 1'300}}),
                                            clock_ahead(0, 77'000'000, {{1'100, 1'310}})});
  // b is behind by at least 5 s - 310 + 1,000 and at most 5 s + 200: the middle, ± half of it.
  EXPECT_EQ(out[0].by, MachineClock::Aligned::kIsTheirs);
  EXPECT_EQ(out[1].by, MachineClock::Aligned::kCollectives);
  ASSERT_TRUE(out[1].error_ns);
  EXPECT_EQ(*out[1].error_ns, 255u);
  EXPECT_LE(std::abs(out[1].shift_ns - out[0].shift_ns - 5 * kSecond), 255);
  EXPECT_EQ(out[1].collectives, 1u);
}

TEST(ClockAlignment, MoreCollectivesNarrowIt) {
  const auto out = align_clocks(std::vector{
      clock_ahead(0, 0, {{1'000, 9'000}, {20'000, 20'050}, {30'000, 38'000}}),
      clock_ahead(kSecond, 0, {{5'000, 9'000}, {20'010, 20'040}, {30'000, 31'000}})});
  const auto& other = out[0].by == MachineClock::Aligned::kCollectives ? out[0] : out[1];
  EXPECT_LE(*other.error_ns, 40u);
  EXPECT_LE(std::abs(out[0].shift_ns - out[1].shift_ns - kSecond), 40);
  EXPECT_FALSE(other.drifts);
}

TEST(ClockAlignment, AClockThatDriftsIsNotCalledExact) {
  auto first = clock_ahead(0, 0, {{1'000'000, 1'000'100}, {900'000'000, 900'000'100}});
  auto second = clock_ahead(0, 0, {{1'000'000, 1'000'100}, {900'000'000, 900'000'100}});
  second.collectives[2u << 4].last_begin_ns += 40'000;  // 40 us ahead by then
  second.collectives[2u << 4].first_end_ns += 40'000;
  const auto out = align_clocks(std::vector{first, second});
  EXPECT_TRUE(out[1].drifts);
  EXPECT_GE(*out[1].error_ns, 20'000u);
  EXPECT_LE(*out[1].error_ns, 21'000u);
}

TEST(ClockAlignment, WhatContradictsItselfIsNotUsed) {
  auto first = clock_ahead(0, 0, {{1'000, 1'100}, {2'000, 2'100}});
  auto second = clock_ahead(0, 5, {{1'000, 1'100}, {9 * kSecond, 9 * kSecond + 100}});
  const auto out = align_clocks(std::vector{first, second});
  EXPECT_EQ(out[1].by, MachineClock::Aligned::kWallClock);
  EXPECT_FALSE(out[1].error_ns);
  EXPECT_EQ(out[1].shift_ns, 5);
}

TEST(ClockAlignment, GroupsAreTakenApart) {
  auto first = clock_ahead(0, 0, {{1'000, 1'100}}), second = clock_ahead(0, 0, {{1'000, 1'100}});
  first.collectives[1u << 4 | 1] = {50 * kSecond, 50 * kSecond + 10};  // not the same group there
  second.collectives[1u << 4 | 1] = {70 * kSecond, 70 * kSecond + 10};
  const auto out = align_clocks(std::vector{first, second});
  EXPECT_EQ(out[1].by, MachineClock::Aligned::kCollectives);
  EXPECT_EQ(out[1].error_ns, 100u);
}

TEST(ClockAlignment, AClockIsReachedOverAnother) {
  auto first = clock_ahead(0, 0, {{1'000, 1'100}});
  auto middle = clock_ahead(kSecond, 0, {{1'000, 1'100}});
  auto last = clock_ahead(3 * kSecond, 0, {});
  middle.collectives[7u << 4] = {kSecond + 5'000, kSecond + 5'100};
  last.collectives[7u << 4] = {3 * kSecond + 5'000, 3 * kSecond + 5'100};
  const auto out = align_clocks(std::vector{first, middle, last});
  EXPECT_LE(std::abs(out[0].shift_ns - out[2].shift_ns - 3 * kSecond), 200);
  EXPECT_EQ(out[0].error_ns.value_or(0) + out[2].error_ns.value_or(0), 200u);
  for (const MachineClock& one : out) EXPECT_GE(one.shift_ns, 0);
}

TEST(ClockAlignment, ImpossibleTimesAreNotUsed) {
  auto first = clock_ahead(0, 0, {{1'000, 1'100}}), second = clock_ahead(0, 0, {{1'000, 1'100}});
  second.collectives[1u << 4] = {UINT64_MAX, UINT64_MAX - 1};
  first.wall_offset_ns = INT64_MAX, second.wall_offset_ns = INT64_MIN;
  const auto out = align_clocks(std::vector{first, second});
  EXPECT_NE(out[0].by, MachineClock::Aligned::kCollectives);
  EXPECT_EQ(out[0].shift_ns, 0);
}

}  // namespace
}  // namespace gpumemprof

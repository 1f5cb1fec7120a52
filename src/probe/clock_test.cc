#include "probe/clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "probe/sys.h"

namespace gpumemprof::probe {
namespace {

constexpr uint64_t kGhz2 = uint64_t{1} << 31;  // the scale of 2 GHz: half a ns a tick
constexpr uint64_t kSecond = 1'000'000'000;

TEST(ClockScale, IsNanosecondsATickTimesTwoToThe32) {
  EXPECT_EQ(scale_between({1000, 500}, {1000 + 2 * kSecond, 500 + kSecond}), kGhz2);
  EXPECT_EQ(scale_between({0, 0}, {4 * kSecond, kSecond}), kGhz2 / 2);
}

TEST(ClockScale, IsNoneOfACounterThatStoodStillOrWentBackwards) {
  EXPECT_EQ(scale_between({5, 5}, {5, 500}), 0u);
  EXPECT_EQ(scale_between({500, 5}, {400, 50}), 0u);
  EXPECT_EQ(scale_between({5, 50}, {500, 40}), 0u);
  EXPECT_EQ(scale_between({0, 0}, {kSecond / 2, kSecond}), 0u) << "0.5 GHz";
  EXPECT_EQ(scale_between({0, 0}, {17 * kSecond, kSecond}), 0u) << "17 GHz";
}

TEST(ClockScale, ASecondOneMayDifferByAThousandth) {
  EXPECT_TRUE(is_same_scale(kGhz2, kGhz2 + kGhz2 / 1001));
  EXPECT_TRUE(is_same_scale(kGhz2 + kGhz2 / 1001, kGhz2));
  EXPECT_FALSE(is_same_scale(kGhz2, kGhz2 + kGhz2 / 900));
  EXPECT_FALSE(is_same_scale(kGhz2 + kGhz2 / 900, kGhz2));
  EXPECT_FALSE(is_same_scale(0, 0));
}

TEST(ClockLine, FollowsTheCounterWithItsScale) {
  const ClockLine line = {100, 7'000, kGhz2};
  EXPECT_EQ(time_on(line, 100), 7'000u);
  EXPECT_EQ(time_on(line, 100 + 2 * kSecond), 7'000 + kSecond);
  EXPECT_EQ(time_on(line, 100 + 2'000'000 * kSecond), 7'000 + 1'000'000 * kSecond)
      << "no overflow in weeks";
}

TEST(ClockLine, TheFirstBeginsAtTheKernelsClock) {
  const ClockLine next = next_line({0, 0, 0}, {123, 456}, kGhz2);
  EXPECT_EQ(next.counter, 123u);
  EXPECT_EQ(next.time_ns, 456u);
  EXPECT_EQ(next.scale, kGhz2);
}

TEST(ClockLine, GoesForwardToTheKernelsClock) {
  const ClockLine next = next_line({0, 0, kGhz2}, {2 * kSecond, kSecond + 40}, kGhz2);
  EXPECT_EQ(next.time_ns, kSecond + 40);
  EXPECT_EQ(next.scale, kGhz2);
}

TEST(ClockLine, NeverGoesBackAndIsLessSteepUntilTheKernelsClockHasReachedIt) {
  const ClockLine next = next_line({0, 0, kGhz2}, {2 * kSecond, kSecond - 50'000}, kGhz2);
  EXPECT_EQ(next.time_ns, kSecond);
  EXPECT_EQ(time_on(next, 4 * kSecond), 2 * kSecond - 50'000);
}

TEST(ClockLine, EndsWhereTheKernelsClockIsFarBehind) {
  EXPECT_EQ(next_line({0, 0, kGhz2}, {2 * kSecond, kSecond - 100'001}, kGhz2).scale, 0u);
}

TEST(ClockLine, AfterAnHourWithoutEventsOnlyTheTimesThatEventsHadAreInTheWay) {
  // The old line would be 1.8 ms ahead by now: half a millionth of an hour.
  const ClockPair now = {7200 * kSecond, 3600 * kSecond - 1'800'000};
  EXPECT_EQ(latest_on({0, 0, kGhz2}, now.counter), kEndTicks / 2);
  const ClockLine next = next_line({0, 0, kGhz2}, now, kGhz2);
  EXPECT_EQ(next.time_ns, now.time_ns);
  EXPECT_EQ(next.scale, kGhz2);
}

TEST(EventTime, IsTheKernelsWithinTenMicrosecondsBeforeAndAfterTheCounterIsLearnt) {
  const int writer = 0;
  const uint64_t end = monotonic_ns() + 2 * kSecond + kSecond / 2;  // lines are replaced meanwhile
  uint64_t last = 0, out = 0, events = 0;
  while (last < end) {
    const uint64_t before = monotonic_ns(), time = event_time_ns(&writer), after = monotonic_ns();
    ASSERT_GE(time, last);
    last = time;
    events += 1;
    out += time + 10'000 < before || time > after + 10'000;
  }
  EXPECT_EQ(out, 0u) << "of " << events;
}

TEST(EventTime, WhatAThreadLearnsOfHappenedBefore) {
  // Two threads hand a turn to each other; each has seen the other's time when it takes its own. On
  // a busy machine they may have few turns in the time that there is.
  std::vector<uint64_t> times(200'000);
  const uint64_t end = monotonic_ns() + kSecond;
  std::atomic<uint64_t> turn = 0;
  std::atomic<bool> is_over = false;
  auto play = [&](uint64_t first) {
    for (uint64_t i = first; i < times.size(); i += 2) {
      while (turn.load(std::memory_order_acquire) != i) {
        if (is_over) return;
        std::this_thread::yield();
      }
      times[i] = event_time_ns(&first);
      if (times[i] > end) is_over = true;
      turn.store(i + 1, std::memory_order_release);
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  ASSERT_GE(turn, 2u);
  for (uint64_t i = 1; i < turn; ++i) ASSERT_GE(times[i], times[i - 1]) << i;
}

}  // namespace
}  // namespace gpumemprof::probe

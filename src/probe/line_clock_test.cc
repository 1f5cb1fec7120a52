#include "probe/line_clock.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <utility>

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
  EXPECT_EQ(next_line({0, 0, kGhz2}, {2 * kSecond, kSecond - kMostBehindNs - 1}, kGhz2).scale, 0u);
}

TEST(ClockLine, AfterAnHourWithoutEventsOnlyTheTimesThatEventsHadAreInTheWay) {
  // The old line would be 1.8 ms ahead by now: half a millionth of an hour.
  const ClockPair now = {7200 * kSecond, 3600 * kSecond - 1'800'000};
  EXPECT_EQ(latest_on({0, 0, kGhz2}, now.counter), kEndTicks / 2);
  const ClockLine next = next_line({0, 0, kGhz2}, now, kGhz2);
  EXPECT_EQ(next.time_ns, now.time_ns);
  EXPECT_EQ(next.scale, kGhz2);
}

/// A counter of 2 GHz and a kernel's clock, which stand still but for what reading them takes, and
/// for pass().
struct FakeMachine {
  static inline uint64_t ticks, ns, reading_takes_ns, counter_reads, waits;
  static inline uint32_t process;
  static inline bool trusted;
  static inline std::function<void()> at_next_counter;

  static uint64_t kernel_ns() {
    pass(reading_takes_ns);
    return ns;
  }
  static uint64_t counter() {
    counter_reads += 1;
    if (auto what = std::exchange(at_next_counter, nullptr)) what();
    pass(10);
    return ticks;
  }
  static void wait_for_loads() { waits += 1; }
  static bool is_trusted() { return trusted; }
  static uint32_t owner() { return process; }

  static void pass(uint64_t passed_ns) { ns += passed_ns, ticks += 2 * passed_ns; }
};

class LineClockTest : public testing::Test {
 protected:
  void SetUp() override {
    FakeMachine::ticks = 10 * kSecond, FakeMachine::ns = 77 * kSecond,
    FakeMachine::reading_takes_ns = 20;
    FakeMachine::counter_reads = FakeMachine::waits = 0, FakeMachine::process = 1,
    FakeMachine::trusted = true;
    FakeMachine::at_next_counter = nullptr;
  }

  uint64_t take(LineClock<FakeMachine>& clock, const void* writer) {
    const uint64_t time_ns = clock.time_ns(writer);
    EXPECT_GE(time_ns, last_) << "at " << FakeMachine::ns;
    last_ = time_ns;
    return time_ns;
  }
  uint64_t take() { return take(clock_, &one_); }

  /// With an event a millisecond.
  void events_for(uint64_t milliseconds) {
    for (uint64_t i = 0; i < milliseconds; ++i) FakeMachine::pass(1'000'000), take();
  }
  void learn() {
    events_for(120);
    ASSERT_TRUE(clock_.has_line());
  }
  int64_t ahead_ns() { return static_cast<int64_t>(take() - FakeMachine::ns); }

  LineClock<FakeMachine> clock_;
  int one_ = 0, other_ = 0;
  uint64_t last_ = 0;
};

TEST_F(LineClockTest, ACounterThatIsNotTrustedIsNeverRead) {
  FakeMachine::trusted = false;
  for (int i = 0; i < 1000; ++i) {
    events_for(1);
    EXPECT_EQ(ahead_ns(), 0);
  }
  EXPECT_TRUE(clock_.is_refused());
  EXPECT_EQ(FakeMachine::counter_reads, 0u);
}

TEST_F(LineClockTest, IsReadOffTheCounterAfterTwoScalesThatAreTheSame) {
  take();
  events_for(49);
  EXPECT_FALSE(clock_.has_line());
  EXPECT_EQ(ahead_ns(), 0);
  events_for(71);
  EXPECT_TRUE(clock_.has_line());
  EXPECT_LE(std::abs(ahead_ns()), 20) << "what its readings take";
}

TEST_F(LineClockTest, ACounterThatDoublesItsSpeedWhileItIsLearntIsRefused) {
  events_for(60);
  for (int i = 0; i < 60; ++i) {
    FakeMachine::ticks += 2'000'000;
    events_for(1);
  }
  EXPECT_TRUE(clock_.is_refused());
  EXPECT_EQ(ahead_ns(), 0);
}

TEST_F(LineClockTest, OnlyAProgramOfSeveralThreadsWaitsForLoads) {
  learn();
  FakeMachine::waits = 0;
  events_for(10);
  EXPECT_EQ(FakeMachine::waits, 0u);
  take(clock_, &other_);
  EXPECT_EQ(FakeMachine::waits, 1u);
  events_for(10);
  EXPECT_EQ(FakeMachine::waits, 11u) << "for good";
}

TEST_F(LineClockTest, FollowsAKernelsClockThatIsSlewed) {
  learn();
  for (const int64_t ppm : {500, -500}) {
    for (int i = 0; i < 10'000; ++i) {
      FakeMachine::ticks =
          static_cast<uint64_t>(static_cast<int64_t>(FakeMachine::ticks) + 2 * ppm);
      events_for(1);
    }
    EXPECT_FALSE(clock_.is_refused());
    EXPECT_LE(std::abs(ahead_ns()), 1'000'000) << "500 ppm of two lines";
  }
}

TEST_F(LineClockTest, AnHourWithoutEventsIsNoReasonToRefuse) {
  learn();
  FakeMachine::pass(3600 * kSecond);
  FakeMachine::ticks += 3600 * 1000;  // half a millionth
  EXPECT_LE(std::abs(ahead_ns()), 20) << "what its readings take";
  EXPECT_FALSE(clock_.is_refused());
}

TEST_F(LineClockTest,
       AfterASleepInWhichTheCounterRanTimeGoesOnHalfAsFastUntilTheKernelsClockHasComeUp) {
  learn();
  FakeMachine::ticks += 2 * 3 * kSecond;
  const int64_t ahead = ahead_ns();
  EXPECT_TRUE(clock_.is_refused());
  EXPECT_GT(ahead, 0);
  EXPECT_LE(ahead, static_cast<int64_t>(kEndTicks / 2));
  FakeMachine::pass(1000);
  EXPECT_EQ(ahead_ns(), ahead - 500 - 20 / 2)
      << "half of what passed, and of a reading of the kernel's";
  events_for(2 * static_cast<uint64_t>(ahead) / 1'000'000 + 1);
  EXPECT_EQ(ahead_ns(), 0);
}

TEST_F(LineClockTest, ACounterThatBeginsAgainIsRefused) {
  learn();
  FakeMachine::ticks = 5;
  events_for(5000);
  EXPECT_TRUE(clock_.is_refused());
  EXPECT_EQ(ahead_ns(), 0);
}

TEST_F(LineClockTest, ALineThatComesTooLateIsNotPutInForce) {
  learn();
  events_for(900);
  FakeMachine::pass(200'000'000);  // the line is over: this event tunes
  int reads = 0;
  std::function<void()> stall = [&] {
    // After the three of the pair comes the one before the line is put in force.
    if (++reads == 5) return FakeMachine::pass(300'000'000);
    FakeMachine::at_next_counter = stall;
  };
  FakeMachine::at_next_counter = stall;
  take();
  EXPECT_EQ(reads, 5);
  EXPECT_LE(std::abs(ahead_ns()), 100);
  events_for(3000);
  EXPECT_FALSE(clock_.is_refused());
  EXPECT_LE(std::abs(ahead_ns()), 100);
}

TEST_F(LineClockTest, AChildThatIsForkedInTheMiddleOfATuningLearnsAfresh) {
  learn();
  FakeMachine::pass(2 * kSecond);
  LineClock<FakeMachine> child;
  FakeMachine::at_next_counter = [&] { FakeMachine::at_next_counter = [&] { child = clock_; }; };
  take();
  FakeMachine::process = 2;
  for (int i = 0; i < 2200; ++i) {
    FakeMachine::pass(1'000'000);
    take(child, &one_);
  }
  EXPECT_TRUE(child.has_line());
  FakeMachine::counter_reads = 0;
  take(child, &one_);
  EXPECT_EQ(FakeMachine::counter_reads, 1u) << "the kernel is not asked any more";
}

TEST_F(LineClockTest, AKernelsClockThatIsSlowToReadIsAskedOnceAnEvent) {
  FakeMachine::reading_takes_ns = 1000;
  events_for(200);
  EXPECT_TRUE(clock_.is_refused());
  const uint64_t before = FakeMachine::ns;
  take();
  EXPECT_EQ(FakeMachine::ns, before + 1000);
}

}  // namespace
}  // namespace gpumemprof::probe

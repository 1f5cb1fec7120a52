#include "analysis/leaks/leak_limit.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(LeakLimit, IsReachedAfterTheWholeStepsThatFitIntoWhatIsLeft) {
  const Leak leak{.bytes_a_step = 300, .seconds_a_step = 0.5};
  const Tables tables;
  // 10,000 - 1,000 bytes are 30 steps of 300, which take 15 seconds.
  LeakLimit limit = limit_of(leak, tables, 1000, 10'000);
  EXPECT_EQ(limit.limit_bytes, 10'000u);
  EXPECT_EQ(limit.steps_left, 30u);
  EXPECT_EQ(limit.seconds_left, 15u);
  // One byte less is no 30th step; 29.997 steps take 14.998 seconds.
  limit = limit_of(leak, tables, 1001, 10'000);
  EXPECT_EQ(limit.steps_left, 29u);
  EXPECT_EQ(limit.seconds_left, 14u);
}

TEST(LeakLimit, IsReachedWhereMoreIsHeldThanThereIs) {
  const LeakLimit limit = limit_of({.bytes_a_step = 300, .seconds_a_step = 0.5}, {}, 9000, 8000);
  EXPECT_EQ(limit.steps_left, 0u);
  EXPECT_EQ(limit.seconds_left, 0u);
}

TEST(LeakLimit, WithoutThePaceOfStepsThereAreNoSeconds) {
  const LeakLimit limit = limit_of({.bytes_a_step = 2.5}, {}, 0, 1000);
  EXPECT_EQ(limit.steps_left, 400u);
  EXPECT_EQ(limit.seconds_left, std::nullopt);
}

TEST(LeakLimit, WithoutASizeThereIsNoLimitAndAReason) {
  const LeakLimit limit = limit_of({.bytes_a_step = 300}, {}, 0, std::nullopt);
  EXPECT_EQ(limit.limit_bytes, std::nullopt);
  EXPECT_EQ(limit.steps_left, std::nullopt);
  EXPECT_FALSE(limit.why_unknown.empty());
}

}  // namespace
}  // namespace gpumemprof

#include "analysis/leaks/leak_growth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "analysis/leaks/leak_period.h"

namespace gpumemprof {
namespace {

constexpr uint32_t kSteps = 80;

/// A stack with one window a step, that holds `held(step)` between the steps and 1,000 bytes more
/// within them.
SiteHistory site_that_holds(const std::function<uint64_t(uint32_t)>& held) {
  SiteHistory site{.stack = 1, .alloc_count = kSteps, .alloc_bytes = uint64_t{kSteps} * 100};
  for (uint32_t step = 0; step < kSteps; ++step) {
    site.cells.push_back({step, 1, held(step), held(step) + 1000});
  }
  site.live_bytes = held(kSteps - 1), site.live_count = kSteps;
  return site;
}

Period one_window_a_step() {
  Period period{.from = Period::From::kMarks, .last_window = kSteps - 1};
  for (uint32_t step = 0; step < kSteps; ++step) period.done.push_back(step + 1);
  return period;
}

std::optional<LeakGrowth> growth(const std::function<uint64_t(uint32_t)>& held) {
  return growth_of(site_that_holds(held), one_window_a_step());
}

TEST(LeakGrowth, SlopeOfASteadyLeakIsItsBytesAStep) {
  const auto found = growth([](uint32_t step) { return 500 + 128 * uint64_t{step}; });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes_a_step, 128);
  EXPECT_EQ(found->grown_bytes, 128 * found->steps);
  EXPECT_EQ(found->rises + 1, found->points);
}

TEST(LeakGrowth, WhatGrowsEveryThirdStepGrows) {
  const auto found = growth([](uint32_t step) { return uint64_t{step / 3} * 300; });
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->bytes_a_step, 100, 3);
}

TEST(LeakGrowth, SlowsWhereItsLastThirdGrewFarLessThanItsFirst) {
  EXPECT_FALSE(growth([](uint32_t step) { return uint64_t{step} * 100; })->slows);
  // A table of 640 rows that are drawn at random: half of what is left every 25 steps, so that
  // the last third of 60 steps adds 0.14 of what is missing, the first 0.43.
  const auto fills = growth([](uint32_t step) {
    return static_cast<uint64_t>(64'000 * (1 - std::pow(0.5, step / 25.0)));
  });
  ASSERT_TRUE(fills);
  EXPECT_TRUE(fills->slows);
}

TEST(LeakGrowth, ConstantIsNoGrowth) {
  EXPECT_FALSE(growth([](uint32_t) { return 4096; }));
  EXPECT_FALSE(growth([](uint32_t) { return 0; }));
}

TEST(LeakGrowth, CacheThatFillsAndStopsIsNoGrowth) {
  for (uint32_t full : {5u, 16u, 28u, 40u}) {
    EXPECT_FALSE(growth([=](uint32_t step) { return uint64_t{std::min(step, full)} * 100; }))
        << full;
  }
}

TEST(LeakGrowth, WhatIsGivenBackEveryFewStepsIsNoGrowth) {
  for (uint32_t every : {2u, 5u, 9u, 20u}) {
    EXPECT_FALSE(growth([=](uint32_t step) { return uint64_t{step % every} * 100; })) << every;
  }
}

TEST(LeakGrowth, WhatIsNoHigherAtTheEndThanBeforeTheLastReturnIsNoGrowth) {
  for (uint32_t every = 24; every <= 53; ++every) {
    EXPECT_FALSE(growth([=](uint32_t step) { return uint64_t{step % every} * 100; })) << every;
  }
}

TEST(LeakGrowth, WhatGrowsBeyondAllThatWasBeforeGrowsAlsoWhereItReturns) {
  // 40 bytes a step stay, and 160 more come and go with every fourth step.
  const auto found = growth([](uint32_t step) { return step * 40 + (step % 4) * 40; });
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->bytes_a_step, 40, 2);
  // Emptied once, and then twice as high as before.
  const auto again =
      growth([](uint32_t step) { return uint64_t{step < 27 ? step : step - 27} * 100; });
  ASSERT_TRUE(again);
  EXPECT_EQ(again->bytes_a_step, 100);
}

TEST(LeakGrowth, OneOrTwoJumpsAreNoGrowth) {
  EXPECT_FALSE(growth([](uint32_t step) { return step < 50 ? 100 : 9000; }));
  EXPECT_FALSE(growth([](uint32_t step) { return step < 40 ? 100 : step < 70 ? 4000 : 9000; }));
}

TEST(LeakGrowth, SizesAtRandomAreNoGrowth) {
  uint32_t found = 0;
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    uint32_t state = seed * 2654435761u;
    found += growth([&](uint32_t) {
               state = state * 1664525u + 1013904223u;
               return uint64_t{state >> 20};
             }).has_value();
  }
  EXPECT_EQ(found, 0);
}

TEST(LeakGrowth, WhatBeginsLateGrowsFromThereOn) {
  const auto found = growth([](uint32_t step) { return step < 45 ? 0 : uint64_t{step - 45} * 64; });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes_a_step, 64);
  // In the last eighth of the run there is no telling.
  EXPECT_FALSE(growth([](uint32_t step) { return step < 70 ? 0 : uint64_t{step - 70} * 64; }));
  // What is undercut again and again has not begun.
  EXPECT_FALSE(growth([](uint32_t step) {
    return step < 45 ? 0 : step % 3 == 0 ? uint64_t{step - 45} : 9000;
  }));
}

TEST(LeakGrowth, BurstsCountByTheStepsBetweenThem) {
  // 700 bytes every tenth step, beginning with the fourth.
  const auto found = growth([](uint32_t step) { return uint64_t{(step + 6) / 10} * 700; });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes_a_step, 70);
  EXPECT_EQ(found->grown_bytes, 70 * found->steps);
}

TEST(LeakGrowth, WhatIsReleasedOnceIsNoPauseBetweenBursts) {
  // 100 bytes a step; in step 50 the collector frees ten blocks.
  const auto found = growth([](uint32_t step) { return step * 100 - (step < 50 ? 0 : 1000); });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->steps, 58) << "from step 20, the warm-up, to 78, as the last is left out";
  EXPECT_EQ(found->grown_bytes, 58 * 100 - 1000);
}

/// Twelve windows after every `steps` steps, in each of which `grows` bytes more stay; the last
/// after the last step.
std::optional<LeakGrowth> validations(uint32_t epochs, uint32_t steps, uint64_t grows) {
  SiteHistory site{.stack = 1};
  Period period{.from = Period::From::kMarks};
  uint64_t held = 0, done = 0;
  for (uint32_t epoch = 0; epoch < epochs; ++epoch) {
    for (uint32_t step = 0; step < steps; ++step) {
      period.last_window = static_cast<uint32_t>(period.done.size());
      period.done.push_back(++done);
    }
    for (uint32_t batch = 0; batch < 12; ++batch) {
      const uint32_t window = static_cast<uint32_t>(period.done.size());
      site.cells.push_back({window, 1, held, held + grows, grows});
      held += grows, ++site.alloc_count, site.alloc_bytes += grows;
      period.done.push_back(done);
    }
  }
  site.live_bytes = held, site.live_count = site.alloc_count;
  return growth_of(site, period);
}

TEST(LeakGrowth, ThreeBurstsOfManyAllocationsAreEnough) {
  const auto found = validations(3, 10, 50);
  ASSERT_TRUE(found);
  // Of the last burst the floor does not have the last block; 50 of 12 * 50 * 2 bytes.
  EXPECT_NEAR(found->bytes_a_step, 12 * 50 / 10.0, 0.05 * 60);
  EXPECT_FALSE(validations(2, 15, 50));
}

TEST(LeakGrowth, EightLongStepsAreEnoughWhereEachOfThemGrows) {
  SiteHistory site{.stack = 1, .alloc_count = 80, .alloc_bytes = 8000};
  Period period{.from = Period::From::kMarks, .last_window = 79};
  for (uint32_t window = 0; window < 80; ++window) {
    site.cells.push_back({window, 1, uint64_t{window} * 100, uint64_t{window + 1} * 100, 100});
    period.done.push_back((window + 1) / 10);
  }
  site.live_bytes = 8000, site.live_count = 80;
  const auto found = growth_of(site, period);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes_a_step, 1000);
}

TEST(LeakGrowth, AStackThatRisesWithItsLineHasItsOwnFigures) {
  const SiteHistory site = site_that_holds([](uint32_t step) { return uint64_t{step / 9} * 90; });
  const auto found = growth_along(site, one_window_a_step());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes_a_step, 10);
  EXPECT_FALSE(growth_along(site_that_holds([](uint32_t) { return 64; }), one_window_a_step()));
}

TEST(LeakGrowth, OneBlockOfMillionsThatStaysNowAndThenWaitsForTheCollector) {
  SiteHistory site = site_that_holds([](uint32_t step) { return uint64_t{step / 4} * 100; });
  ASSERT_TRUE(growth_of(site, one_window_a_step()));
  site.alloc_count = uint64_t{kSteps} * 1000, site.alloc_bytes = site.alloc_count * 100;
  EXPECT_FALSE(growth_of(site, one_window_a_step()));
}

TEST(LeakGrowth, SmallBlocksThatStayAmongLargeOnesThatGoAreCountedBySizeOfThoseThatStay) {
  // Each step makes 256,000 bytes that go and 4 that stay: 4 bytes a step are a block a step.
  SiteHistory site = site_that_holds([](uint32_t step) { return uint64_t{step} * 4; });
  site.alloc_count = uint64_t{2} * kSteps, site.alloc_bytes = uint64_t{kSteps} * 256'004;
  site.median_live_bytes = 4;
  const auto found = growth_of(site, one_window_a_step());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes_a_step, 4);
  // As many bytes of blocks as large as the mean are a few in many thousand.
  site.alloc_count *= 1000, site.alloc_bytes *= 1000, site.median_live_bytes = 128'002;
  EXPECT_FALSE(growth_of(site, one_window_a_step()));
}

TEST(LeakGrowth, ATableAndTheRowThatItIsJoinedWithDoNotWaitForTheCollector) {
  // Of one stack, 256 bytes a step; live are a row, the table, and the one that it replaces.
  SiteHistory site = site_that_holds([](uint32_t step) { return 256 * uint64_t{step}; });
  site.alloc_count = 2 * kSteps, site.alloc_bytes = 256 * kSteps * (kSteps + 3) / 2;
  site.median_live_bytes = 256 * (kSteps - 1), site.live_count = 3;
  const auto found = growth_of(site, one_window_a_step());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes_a_step, 256);
  site.live_count = 4;
  EXPECT_FALSE(growth_of(site, one_window_a_step()));
}

TEST(LeakGrowth, WithoutStepsNothingIsSaid) {
  const SiteHistory site = site_that_holds([](uint32_t step) { return uint64_t{step} * 100; });
  EXPECT_FALSE(growth_of(site, Period{.why_none = "none"}));
}

}  // namespace
}  // namespace gpumemprof

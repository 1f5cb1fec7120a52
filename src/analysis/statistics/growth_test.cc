#include "analysis/statistics/growth.h"

#include <gtest/gtest.h>

#include <functional>

namespace gpumemprof {
namespace {

std::vector<double> levels(size_t count, const std::function<double(double)>& of) {
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i) out.push_back(of(static_cast<double>(i)));
  return out;
}

TEST(Growth, FewLevelsMustRiseEveryTime) {
  EXPECT_FALSE(growth_of_floor(levels(5, [](double i) { return i; })));
  const auto six = growth_of_floor(levels(6, [](double i) { return 100 + 3 * i; }));
  ASSERT_TRUE(six);
  EXPECT_EQ(six->bytes, 15);
  EXPECT_EQ(six->rises, 5u);
  EXPECT_EQ(six->tau, 1);
  EXPECT_FALSE(growth_of_floor(levels(9, [](double i) { return i == 4 ? 3 : i; })));
  // S = 44 of 45 pairs that differ, less 1 by a tie: z = 43 / sqrt((10 * 9 * 25 - 2 * 9) / 18).
  const auto ten = growth_of_floor(levels(10, [](double i) { return i == 4 ? 3 : i; }));
  ASSERT_TRUE(ten);
  EXPECT_NEAR(ten->z, 43 / 11.135529, 1e-5);
}

TEST(Growth, WhatStopsOrJumpsOrComesAndGoesIsNone) {
  EXPECT_FALSE(growth_of_floor(levels(30, [](double) { return 7; })));
  EXPECT_FALSE(growth_of_floor(levels(30, [](double i) { return i < 18 ? i : 18; })));
  EXPECT_FALSE(growth_of_floor(levels(30, [](double i) { return i < 15 ? 0 : 100; })));
  EXPECT_FALSE(growth_of_floor(levels(30, [](double i) { return i < 15 ? i : 100 + i; })));
  EXPECT_FALSE(growth_of_floor(levels(30, [](double i) { return static_cast<int>(i) % 10; })));
}

TEST(Growth, OfAFloorWhatDoesNotFallBackCountsAndOfACeilingWhatWasNeverReached) {
  // A dip at the end takes all of it back; below peaks it is none.
  const auto dips = levels(30, [](double i) { return i == 28 ? 0 : 10 * i; });
  EXPECT_FALSE(growth_of_floor(dips));
  ASSERT_TRUE(growth_of_ceiling(dips));
  EXPECT_EQ(growth_of_ceiling(dips)->bytes, 290);
  // A peak at the beginning is the highest for good; above a floor it is nothing.
  const auto peak = levels(30, [](double i) { return i == 1 ? 1000 : 10 * i; });
  EXPECT_FALSE(growth_of_ceiling(peak));
  EXPECT_TRUE(growth_of_floor(peak));
}

}  // namespace
}  // namespace gpumemprof

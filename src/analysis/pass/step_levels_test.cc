#include "analysis/pass/step_levels.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(StepLevels, KeepsEachStepWhereThereAreFew) {
  StepLevels levels;
  levels.add({.step = 3, .end_ns = 10, .end_bytes = 5, .least_bytes = 1, .most_bytes = 9});
  levels.add({.step = 4, .end_ns = 20, .end_bytes = 6, .least_bytes = 2, .most_bytes = 8});
  ASSERT_EQ(levels.levels().size(), 2u);
  EXPECT_EQ(levels.levels()[1].step, 4u);
  EXPECT_EQ(levels.levels()[1].most_bytes, 8u);
  EXPECT_EQ(levels.steps_a_level(), 1u);
}

TEST(StepLevels, OfVeryManyNeighboursAreOneWithTheirLeastAndMost) {
  StepLevels levels;
  const uint64_t many = StepLevels::kMost + 3;
  for (uint64_t i = 0; i < many; ++i) {
    levels.add({.step = i, .end_ns = i, .end_bytes = i, .least_bytes = i, .most_bytes = 2 * i});
  }
  EXPECT_EQ(levels.steps(), many);
  EXPECT_EQ(levels.steps_a_level(), 2u);
  ASSERT_EQ(levels.levels().size(), StepLevels::kMost / 2 + 2);
  EXPECT_EQ(levels.levels()[1].step, 3u);
  EXPECT_EQ(levels.levels()[1].least_bytes, 2u);
  EXPECT_EQ(levels.levels()[1].most_bytes, 6u);
  EXPECT_EQ(levels.levels().back().least_bytes, many - 1) << "the last has one step alone";
}

}  // namespace
}  // namespace gpumemprof

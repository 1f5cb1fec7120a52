#include "recording/raw_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpumemprof {
namespace {

TEST(Intervals, WhatIsCoveredIsCountedOrdinalByOrdinal) {
  Intervals list;
  std::vector<bool> holds(400);
  for (uint64_t from = 3; from < 390; from += 7) {
    const uint64_t to = from + 1 + from % 5;
    list.add({from, to});
    for (uint64_t i = from; i < to; ++i) holds[i] = true;
  }
  ASSERT_GT(list.size(), 40u);
  for (uint64_t from = 0; from < 400; ++from) {
    uint64_t expected = 0;
    for (uint64_t to = from; to < 400; ++to) {
      ASSERT_EQ(list.covered(from, to), expected) << from << " to " << to;
      expected += holds[to];
    }
  }
  EXPECT_EQ(Intervals().covered(0, 10), 0u);
}

TEST(Intervals, AddedInAnyOrderTheyBecomeWhatIsCovered) {
  Intervals list;
  std::vector<bool> holds(1000);
  for (uint64_t i = 0; i < 400; ++i) {
    const uint64_t from = i * 617 % 990, to = from + i % 4;
    list.add({from, to});
    for (uint64_t at = from; at < to; ++at) holds[at] = true;
  }
  std::vector<bool> said(1000);
  uint64_t before = 0, missing = 0;
  for (const auto& [from, to] : list) {
    EXPECT_TRUE(from > before || from == 0) << "two that touch are one";
    EXPECT_LT(from, to);
    missing += from - before;
    for (uint64_t at = from; at < to; ++at) said[at] = true;
    before = to;
  }
  EXPECT_EQ(said, holds);
  EXPECT_EQ(list.missing(), missing);
  const Intervals part = list.within(100, 300);
  EXPECT_EQ(part.covered(0, 1000), list.covered(100, 300));
  EXPECT_GT(part.size(), 1u);
}

TEST(Intervals, EachIsLookedAtOnceHoweverTheyCome) {
  constexpr uint64_t kCount = 20'000;
  Intervals list;
  for (uint64_t i = kCount; i-- > 0;) list.add({4 * i, 4 * i + 2});
  EXPECT_EQ(list.size(), kCount);
  EXPECT_EQ(list.steps(), 0u) << "none touches another";
  for (uint64_t i = kCount; i-- > 0;) list.add({4 * i + 2, 4 * i + 4});
  EXPECT_EQ(list.size(), 1u);
  EXPECT_LE(list.steps(), 2 * kCount) << "each that is joined is gone";
}

}  // namespace
}  // namespace gpumemprof

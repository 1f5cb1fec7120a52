#include "recording/raw_stream.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpumemprof {
namespace {

TEST(Intervals, WhatIsCoveredIsCountedOrdinalByOrdinal) {
  std::vector<Interval> list;
  std::vector<bool> holds(400);
  for (uint64_t from = 3; from < 390; from += 7) {
    const uint64_t to = from + 1 + from % 5;
    add_interval(&list, {from, to});
    for (uint64_t i = from; i < to; ++i) holds[i] = true;
  }
  ASSERT_GT(list.size(), 40u);
  for (uint64_t from = 0; from < 400; ++from) {
    uint64_t expected = 0;
    for (uint64_t to = from; to < 400; ++to) {
      ASSERT_EQ(covered(list, from, to), expected) << from << " to " << to;
      expected += holds[to];
    }
  }
  EXPECT_EQ(covered({}, 0, 10), 0u);
}

}  // namespace
}  // namespace gpumemprof

#include "analysis/segment_use.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

constexpr uint64_t kMib = 1 << 20;

TEST(SegmentUse, FreeBytesBesideALiveBlockArePinnedAndWholeSegmentsAreNot) {
  SegmentUse use;
  use.range_came(100 * kMib, 20 * kMib);
  use.range_came(200 * kMib, 20 * kMib);
  use.range_came(300 * kMib, 4 * kMib);  // holds no block, so it is nobody's segment
  use.block_came(100 * kMib, 5 * kMib);
  use.block_came(105 * kMib, 9 * kMib);
  use.block_came(200 * kMib, 20 * kMib);
  EXPECT_EQ(use.segments_bytes(), 40 * kMib);
  EXPECT_EQ(use.allocated_bytes(), 34 * kMib);
  EXPECT_EQ(use.pinned_free_bytes(), 6 * kMib);
  use.block_freed(105 * kMib, false);
  EXPECT_EQ(use.pinned_free_bytes(), 15 * kMib);
  use.block_freed(100 * kMib, false);
  use.block_freed(200 * kMib, false);
  EXPECT_EQ(use.pinned_free_bytes(), 0u);
  EXPECT_EQ(use.segments_bytes(), 40 * kMib);
  use.range_went(100 * kMib);
  EXPECT_EQ(use.segments_bytes(), 20 * kMib);
}

TEST(SegmentUse, ABlockThatStreamsStillUsePinsWithoutBeingAllocated) {
  SegmentUse use;
  use.range_came(8 * kMib, 2 * kMib);
  use.block_came(8 * kMib, kMib);
  use.block_freed(8 * kMib, true);
  EXPECT_EQ(use.allocated_bytes(), 0u);
  EXPECT_EQ(use.pinned_free_bytes(), 2 * kMib);
  use.block_went(8 * kMib);
  EXPECT_EQ(use.pinned_free_bytes(), 0u);
}

TEST(SegmentUse, ABlockMayLieInSeveralRangesAsThoseOfExpandableSegmentsDo) {
  SegmentUse use;
  for (uint64_t page = 0; page < 3; ++page) use.range_came((10 + page) * 2 * kMib, 2 * kMib);
  use.block_came(20 * kMib, 5 * kMib);
  EXPECT_EQ(use.segments_bytes(), 6 * kMib);
  EXPECT_EQ(use.pinned_free_bytes(), kMib);
  use.range_went(20 * kMib);
  EXPECT_EQ(use.allocated_bytes(), 3 * kMib);
  use.block_freed(20 * kMib, false);
  EXPECT_EQ(use.allocated_bytes(), 0u);
  EXPECT_EQ(use.pinned_free_bytes(), 0u);
}

TEST(SegmentUse, WhatCannotBeIsNoHarm) {
  SegmentUse use;
  use.range_came(UINT64_MAX - 5, 100);
  use.range_came(0, UINT64_MAX);
  use.range_came(5 * kMib, kMib);
  use.block_came(0, kMib);
  use.block_came(0, 2 * kMib);
  use.block_came(kMib / 2, UINT64_MAX / 2);
  use.block_came(7, UINT64_MAX);
  use.block_freed(0, false);
  use.block_freed(0, true);
  use.block_went(kMib / 2);
  use.block_went(99);
  EXPECT_EQ(use.allocated_bytes(), 0u);
  use.forget_ranges();
  EXPECT_EQ(use.segments_bytes() + use.pinned_free_bytes(), 0u);
}

}  // namespace
}  // namespace gpumemprof

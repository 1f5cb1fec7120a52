#include "analysis/driver/segment_use.h"

#include <gtest/gtest.h>

#include "base/size.h"

namespace gpumemprof {
namespace {

TEST(SegmentUse, FreeBytesBesideALiveBlockArePinnedAndWholeSegmentsAreNot) {
  SegmentUse use;
  use.range_came(100 * kMiB, 20 * kMiB);
  use.range_came(200 * kMiB, 20 * kMiB);
  use.range_came(300 * kMiB, 4 * kMiB);  // holds no block, so it is nobody's segment
  use.block_came(100 * kMiB, 5 * kMiB);
  use.block_came(105 * kMiB, 9 * kMiB);
  use.block_came(200 * kMiB, 20 * kMiB);
  EXPECT_EQ(use.segments_bytes(), 40 * kMiB);
  EXPECT_EQ(use.allocated_bytes(), 34 * kMiB);
  EXPECT_EQ(use.pinned_free_bytes(), 6 * kMiB);
  use.block_freed(105 * kMiB, false);
  EXPECT_EQ(use.pinned_free_bytes(), 15 * kMiB);
  use.block_freed(100 * kMiB, false);
  use.block_freed(200 * kMiB, false);
  EXPECT_EQ(use.pinned_free_bytes(), 0u);
  EXPECT_EQ(use.segments_bytes(), 40 * kMiB);
  use.range_went(100 * kMiB);
  EXPECT_EQ(use.segments_bytes(), 20 * kMiB);
}

TEST(SegmentUse, ABlockThatStreamsStillUsePinsWithoutBeingAllocated) {
  SegmentUse use;
  use.range_came(8 * kMiB, 2 * kMiB);
  use.block_came(8 * kMiB, kMiB);
  use.block_freed(8 * kMiB, true);
  EXPECT_EQ(use.allocated_bytes(), 0u);
  EXPECT_EQ(use.pinned_free_bytes(), 2 * kMiB);
  use.block_went(8 * kMiB);
  EXPECT_EQ(use.pinned_free_bytes(), 0u);
}

TEST(SegmentUse, ABlockMayLieInSeveralRangesAsThoseOfExpandableSegmentsDo) {
  SegmentUse use;
  for (uint64_t page = 0; page < 3; ++page) use.range_came((10 + page) * 2 * kMiB, 2 * kMiB);
  use.block_came(20 * kMiB, 5 * kMiB);
  EXPECT_EQ(use.segments_bytes(), 6 * kMiB);
  EXPECT_EQ(use.pinned_free_bytes(), kMiB);
  use.range_went(20 * kMiB);
  EXPECT_EQ(use.allocated_bytes(), 3 * kMiB);
  use.block_freed(20 * kMiB, false);
  EXPECT_EQ(use.allocated_bytes(), 0u);
  EXPECT_EQ(use.pinned_free_bytes(), 0u);
}

TEST(SegmentUse, WhatCannotBeIsNoHarm) {
  SegmentUse use;
  use.range_came(UINT64_MAX - 5, 100);
  use.range_came(0, UINT64_MAX);
  use.range_came(5 * kMiB, kMiB);
  use.block_came(0, kMiB);
  use.block_came(0, 2 * kMiB);
  use.block_came(kMiB / 2, UINT64_MAX / 2);
  use.block_came(7, UINT64_MAX);
  use.block_freed(0, false);
  use.block_freed(0, true);
  use.block_went(kMiB / 2);
  use.block_went(99);
  EXPECT_EQ(use.allocated_bytes(), 0u);
  use.forget_ranges();
  EXPECT_EQ(use.segments_bytes() + use.pinned_free_bytes(), 0u);
}

}  // namespace
}  // namespace gpumemprof

#include "analysis/leaks/leak_period.h"

#include <gtest/gtest.h>

#include <functional>

#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

constexpr uint32_t kPassSteps = 60;

/// A process with one window a step: its backward pass makes one block of `size(step)` bytes and
/// one of `fixed_bytes` a step.
class LeakPasses : public testing::Test {
 protected:
  Passes passes(std::string_view label, const std::function<uint64_t(uint32_t)>& size,
                uint64_t fixed_bytes) {
    Tables tables;
    ProcessHistory history;
    Period period{.from = Period::From::kMarks, .last_window = kPassSteps - 1};
    for (uint32_t which = 0; which < 2; ++which) {
      const uint32_t file = tables.strings.intern(label);
      const uint32_t function = tables.strings.intern(which == 0 ? "MulBackward0" : "AddBackward0");
      const uint32_t frame = tables.stacks.intern_frame({file, function, 0});
      SiteHistory site{.stack = tables.stacks.push(0, frame)};
      for (uint32_t step = 0; step < kPassSteps; ++step) {
        site.cells.push_back({.window = step, .allocs = 1});
        site.cells.back().alloc_bytes = which == 0 ? size(step) : fixed_bytes;
      }
      history.sites.push_back(std::move(site));
    }
    for (uint32_t step = 0; step < kPassSteps; ++step) period.done.push_back(step + 1);
    return passes_of(history, period, tables);
  }
};

TEST_F(LeakPasses, LongerSequencesMakeLargerBlocks) {
  const auto longer = [](uint32_t step) { return 1000 + 100 * uint64_t{step}; };
  EXPECT_TRUE(passes(kBackwardFile, longer, 1000).have_backward);
  EXPECT_TRUE(passes(kBackwardFile, longer, 1000).sizes_rise);
  EXPECT_TRUE(passes(kModuleFile, longer, 1000).sizes_rise);
  EXPECT_FALSE(passes(kModuleFile, longer, 1000).have_backward);
  EXPECT_FALSE(passes("/srv/me/train.py", longer, 1000).sizes_rise);
}

TEST_F(LeakPasses, AQuarterOfTheBytesMustBeOfThem) {
  // In the last third 1,000 + 100 * 49.5 = 5,950 bytes a step on average.
  const auto longer = [](uint32_t step) { return 1000 + 100 * uint64_t{step}; };
  EXPECT_TRUE(passes(kBackwardFile, longer, 3 * 5950).sizes_rise);
  EXPECT_FALSE(passes(kBackwardFile, longer, 3 * 5950 + 10).sizes_rise);
}

TEST_F(LeakPasses, SizesThatStayOrGoUpAndDownDoNotRise) {
  EXPECT_FALSE(passes(kBackwardFile, [](uint32_t) { return 1000; }, 0).sizes_rise);
  const auto waves = [](uint32_t step) { return 1000 + 100 * uint64_t{step % 5}; };
  EXPECT_FALSE(passes(kBackwardFile, waves, 0).sizes_rise);
}

/// Of a loop of 60 rounds, in each of which these stacks allocate.
class LeakRoundsWork : public testing::Test {
 protected:
  static constexpr uint64_t kRounds = 60;

  /// A block of `bytes` in each round.
  static SiteHistory makes(uint32_t stack, uint64_t bytes) {
    return {.stack = stack, .alloc_count = kRounds, .alloc_bytes = kRounds * bytes,
            .largest_bytes = bytes, .larger_count = 1, .larger_bytes = bytes,
            .other_block_bytes = bytes};
  }

  /// A block that is larger by `bytes` in each round, and beside it one of `row` bytes.
  static SiteHistory enlarges(uint32_t stack, uint64_t bytes, uint64_t row = 0) {
    const uint64_t sum = bytes * kRounds * (kRounds + 1) / 2;
    return {.stack = stack, .alloc_count = (row == 0 ? 1 : 2) * kRounds,
            .alloc_bytes = sum + row * kRounds, .largest_bytes = bytes * kRounds,
            .larger_count = kRounds, .larger_bytes = sum, .other_block_bytes = row};
  }

  static bool work_on_more(std::vector<SiteHistory> sites, const GrowingStacks& grows) {
    ProcessHistory history{.allocs = 6 * kRounds};
    for (SiteHistory& site : sites) {
      if (site.last_alloc == 0) site.last_alloc = history.allocs;
    }
    history.sites = std::move(sites);
    return passes_of(history, {.from = Period::From::kRounds}, {}, grows).rounds_work_on_more;
  }
};

TEST_F(LeakRoundsWork, ATableIsJoinedFromTheRowsThatTheRoundsMake) {
  EXPECT_FALSE(work_on_more({makes(1, 256), enlarges(2, 256)}, {{2, 256}}));
  EXPECT_FALSE(work_on_more({enlarges(2, 256, 256)}, {{2, 256}}));
  EXPECT_FALSE(work_on_more({makes(1, 512), enlarges(2, 256), enlarges(3, 256)},
                            {{2, 256}, {3, 256}}));
  // A line that makes several blocks ends with what it is for.
  SiteHistory line = makes(1, 4096);
  line.other_block_bytes = 256;
  EXPECT_FALSE(work_on_more({line, enlarges(2, 256)}, {{2, 256}}));
  // Of a block alone there is nothing to tell it by.
  EXPECT_FALSE(work_on_more({enlarges(2, 256)}, {{2, 256}}));
}

TEST_F(LeakRoundsWork, SizesThatRiseDoNotRiseByWhatTheRoundsMake) {
  EXPECT_TRUE(work_on_more({makes(1, 256), enlarges(2, 25'600)}, {{2, 25'600}}));
  EXPECT_TRUE(work_on_more({makes(1, 1936), makes(4, 4), enlarges(2, 1584)}, {{2, 1584}}));
  EXPECT_TRUE(work_on_more({enlarges(2, 256), enlarges(3, 64)}, {{2, 256}, {3, 64}}));
}

TEST_F(LeakRoundsWork, WhatIsDroppedRisesToo) {
  EXPECT_TRUE(work_on_more({makes(1, 256), enlarges(2, 256), enlarges(3, 256)}, {{2, 256}}));
  // On the line itself: as much again as the table has.
  EXPECT_TRUE(work_on_more({enlarges(2, 256, 256 * kRounds / 2)}, {{2, 256}}));
}

TEST_F(LeakRoundsWork, ATableThatStoppedInTheFirstPartIsNoWork) {
  SiteHistory stopped = enlarges(3, 256);
  stopped.last_alloc = 2 * kRounds;
  EXPECT_FALSE(work_on_more({makes(1, 256), enlarges(2, 256), stopped}, {{2, 256}}));
}

TEST_F(LeakRoundsWork, LengthsAtRandomAreNoSizesThatRise) {
  SiteHistory random = makes(3, 256);
  random.alloc_count = 1000, random.larger_count = 12;
  EXPECT_FALSE(work_on_more({makes(1, 256), enlarges(2, 256), random}, {{2, 256}}));
}

}  // namespace
}  // namespace gpumemprof

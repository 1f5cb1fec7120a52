#include "analysis/leak_passes.h"

#include <gtest/gtest.h>

#include <functional>

#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

constexpr uint32_t kSteps = 60;

/// A process with one window a step: its backward pass makes one block of `size(step)` bytes and
/// one of `fixed_bytes` a step.
class LeakPasses : public testing::Test {
 protected:
  Passes passes(std::string_view label, const std::function<uint64_t(uint32_t)>& size,
                uint64_t fixed_bytes) {
    Tables tables;
    ProcessHistory history;
    Period period{.from = Period::From::kMarks, .last_window = kSteps - 1};
    for (uint32_t which = 0; which < 2; ++which) {
      const uint32_t file = tables.strings.intern(label);
      const uint32_t function = tables.strings.intern(which == 0 ? "MulBackward0" : "AddBackward0");
      const uint32_t frame = tables.stacks.intern_frame({file, function, 0});
      SiteHistory site{.stack = tables.stacks.push(0, frame)};
      for (uint32_t step = 0; step < kSteps; ++step) {
        site.cells.push_back({.window = step, .allocs = 1});
        site.cells.back().alloc_bytes = which == 0 ? size(step) : fixed_bytes;
      }
      history.sites.push_back(std::move(site));
    }
    for (uint32_t step = 0; step < kSteps; ++step) period.done.push_back(step + 1);
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

}  // namespace
}  // namespace gpumemprof

#include "analysis/replay/uneven_devices.h"

#include <gtest/gtest.h>

#include "base/size.h"

namespace gpumemprof {
namespace {

/// Three devices of one process; two lines, and one that the first device alone has.
class UnevenDevices : public testing::Test {
 protected:
  UnevenDevices() {
    for (uint16_t index = 0; index < 3; ++index) {
      Device& device = tables_.devices.emplace_back();
      device.type = 1, device.index = static_cast<int8_t>(index);
      analysis_.devices.emplace_back().device = index;
    }
    for (uint32_t line : {174u, 181u, 5u}) {
      const uint32_t frame = tables_.stacks.intern_frame(
          {tables_.strings.intern("/job/models.py"), tables_.strings.intern("forward"), line});
      stacks_.push_back(tables_.stacks.push(0, frame));
    }
    analysis_.devices[0].holders_at_peak = {{stacks_[0], 12 * 95 * kMiB, 12},
                                            {stacks_[1], 5 * 95 * kMiB, 5},
                                            {stacks_[2], 100 * kMiB, 1}};
    analysis_.devices[1].holders_at_peak = {{stacks_[0], 24 * 10 * kMiB, 24},
                                            {stacks_[1], 12 * 10 * kMiB, 12}};
    analysis_.devices[2].holders_at_peak = {{stacks_[0], 24 * 3 * kMiB, 24}};
  }

  std::optional<UnevenLine> told(size_t device = 0) {
    return uneven_line(analysis_, tables_, analysis_.devices[device]);
  }

  Tables tables_;
  Analysis analysis_;
  std::vector<uint32_t> stacks_;
};

TEST_F(UnevenDevices, TheLineThatHoldsMostIsToldBesideTheDeviceThatComesClosest) {
  const auto line = told();
  ASSERT_TRUE(line);
  EXPECT_EQ(line->other_device, 1);
  EXPECT_EQ(line->mean_bytes, 95 * kMiB);
  EXPECT_EQ(line->other_mean_bytes, 10 * kMiB);
  EXPECT_DOUBLE_EQ(line->times(), 9.5);
  EXPECT_FALSE(told(1)) << "less than on another";
}

TEST_F(UnevenDevices, LessThanTwiceOrLessThanHalfOfThePeakIsNotTold) {
  // Of line 174 a block is as large: then 475 of 1,715 MiB are uneven.
  analysis_.devices[2].holders_at_peak = {{stacks_[0], 24 * 95 * kMiB, 24}};
  EXPECT_FALSE(told());
  analysis_.devices[2].holders_at_peak = {{stacks_[0], 48 * kMiB, 1}};  // 95 / 48 is below 2
  EXPECT_FALSE(told());
  analysis_.devices[2].holders_at_peak = {{stacks_[0], 47 * kMiB, 1}};
  EXPECT_TRUE(told());
  tables_.devices[1].process = tables_.devices[2].process = 7;
  EXPECT_FALSE(told()) << "other processes may do other work";
}

}  // namespace
}  // namespace gpumemprof

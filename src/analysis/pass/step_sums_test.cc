#include "analysis/pass/step_sums.h"

#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

TEST(StepSums, AddUpToTheDevicesOwn) {
  EventBatch events;
  append(&events, {1, Action::kAlloc, 0x1, 100});
  append(&events, {2, Action::kAlloc, 0x2, 30});
  append(&events, {3, Action::kFreeCompleted, 0x1});
  append(&events, {4, Action::kAlloc, 0x3, 7});
  append(&events, {5, Action::kAlloc, 0x4, 1});
  append(&events, {6, Action::kFreeCompleted, 0x2});
  events.step = {10, 11, kNoStep, -4, kNoStep, kNoStep};
  MemorySource source(events, 2);
  source.mutable_tables().devices.resize(1);
  Result<Analysis> analysis = analyze_source(source, {});
  ASSERT_TRUE(analysis);
  const DeviceAnalysis& device = analysis->devices[0];
  const std::vector<StepSum> steps = device.steps.by_net_bytes();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].step, -4);
  EXPECT_EQ(steps[0].net_bytes(), 7);
  EXPECT_EQ(steps[0].first_event, 3u);
  EXPECT_EQ(steps[1].step, 10) << "whoever freed what it made";
  EXPECT_EQ(steps[1].net_bytes(), 0);
  EXPECT_EQ(steps[1].freed_bytes, 100u);
  EXPECT_EQ(steps[2].step, 11);
  EXPECT_EQ(steps[2].alloc_bytes, 30u);
  EXPECT_EQ(device.steps.without_step().net_bytes(), 1);
  int64_t sum = device.steps.without_step().net_bytes();
  for (const StepSum& step : steps) sum += step.net_bytes();
  EXPECT_EQ(sum, static_cast<int64_t>(device.figures.live_bytes));
}

TEST(StepSums, StayEmptyWhereNoEventHasAStep) {
  EventBatch events;
  append(&events, {1, Action::kAlloc, 0x1, 100});
  MemorySource source(events);
  source.mutable_tables().devices.resize(1);
  EXPECT_TRUE(analyze_source(source, {})->devices[0].steps.empty());
}

}  // namespace
}  // namespace gpumemprof

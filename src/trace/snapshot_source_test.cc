#include "trace/snapshot_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

using ::testing::ElementsAre;

constexpr AllocatorEvent kAlloc(uint64_t address, uint64_t size, int64_t time_us) {
  return {.address = address, .size_bytes = size, .time_us = time_us, .action = Action::kAlloc};
}
constexpr AllocatorEvent kFree(Action step, uint64_t address, uint64_t size, int64_t time_us) {
  return {.address = address, .size_bytes = size, .time_us = time_us, .action = step};
}

AllocatorTrace trace_of(int32_t device, std::initializer_list<AllocatorEvent> events) {
  AllocatorTrace trace;
  trace.device = device;
  trace.has_times = trace.has_history = true;
  trace.streams = {0};
  for (const AllocatorEvent& event : events) trace.events.append(event);
  return trace;
}

SnapshotSource source_of(std::vector<AllocatorTrace> traces) {
  auto snapshot = std::make_shared<AllocatorSnapshot>();
  snapshot->traces = std::move(traces);
  return SnapshotSource(snapshot);
}

/// The state after everything.
LiveState run(SnapshotSource& source) {
  LiveState state;
  if (source.state_before_first_event()) state = *source.state_before_first_event();
  EventBatch batch;
  while (*source.next(&batch)) state.apply(batch);
  return state;
}

TEST(SnapshotSource, ABlockLivesUntilItsFreeIsCompleted) {
  auto source =
      source_of({trace_of(0, {kAlloc(512, 100, 1), kFree(Action::kFreeRequested, 512, 100, 2),
                              kAlloc(1024, 10, 3), kFree(Action::kFreeCompleted, 512, 100, 4)})});
  const LiveState state = run(source);
  const DeviceState& device = state.devices()[0];
  EXPECT_EQ(device.peak_bytes, 110u);
  EXPECT_EQ(device.peak_event, 2u);
  EXPECT_EQ(device.peak_time_ns, 3000u);
  EXPECT_EQ(device.live_bytes, 10u);
  EXPECT_EQ(device.unmatched_frees, 0u);
  EXPECT_TRUE(source.info().can.complete_history);
}

TEST(SnapshotSource, WhereNoFreeIsCompletedTheRequestEndsABlock) {
  auto source = source_of({trace_of(
      0, {kAlloc(512, 100, 1), kFree(Action::kFreeRequested, 512, 100, 2), kAlloc(1024, 10, 3)})});
  const LiveState state = run(source);
  EXPECT_EQ(state.devices()[0].peak_bytes, 100u);
  EXPECT_EQ(state.devices()[0].live_bytes, 10u);
}

TEST(SnapshotSource, BlocksFromBeforeTheTraceCountFromItsBeginning) {
  AllocatorTrace trace =
      trace_of(0, {kFree(Action::kFreeRequested, 512, 100, 1),
                   kFree(Action::kFreeCompleted, 512, 100, 1), kAlloc(512, 30, 2)});
  AllocatorSegment segment;
  segment.size_bytes = 2 << 20;
  segment.blocks = {{512, 512, 30, 0, BlockState::kAllocated},
                    {1024, 512, 7, 0, BlockState::kPendingFree},
                    {1536, 512, 9, 0, BlockState::kFree}};
  trace.segments.push_back(segment);
  auto source = source_of({trace});
  ASSERT_NE(source.state_before_first_event(), nullptr);
  EXPECT_EQ(source.state_before_first_event()->devices()[0].live_bytes, 107u);
  EXPECT_FALSE(source.info().can.complete_history);
  const LiveState state = run(source);
  EXPECT_EQ(state.devices()[0].peak_bytes, 107u);
  EXPECT_EQ(state.devices()[0].live_bytes, 37u);
  EXPECT_EQ(state.devices()[0].unmatched_frees, 0u);
  EXPECT_EQ(state.event_count(), 3u);
}

TEST(SnapshotSource, SegmentsFromBeforeTheTraceMakeItASuffix) {
  AllocatorTrace trace = trace_of(0, {kFree(Action::kSegmentAlloc, 0, 1 << 20, 1)});
  AllocatorSegment segment;
  segment.size_bytes = 2 << 20;
  trace.segments.push_back(segment);
  EXPECT_FALSE(source_of({trace}).info().can.complete_history);
  trace.segments[0].size_bytes = 1 << 20;
  EXPECT_TRUE(source_of({trace}).info().can.complete_history);
}

TEST(SnapshotSource, DevicesAreMergedByTimeAndTheLowerOneComesFirst) {
  auto source = source_of({trace_of(0, {kAlloc(1, 10, 5), kAlloc(2, 20, 7), kAlloc(3, 30, 9)}),
                           trace_of(1, {kAlloc(1, 11, 1), kAlloc(2, 21, 7), kAlloc(3, 31, 7)}),
                           trace_of(2, {kAlloc(1, 12, 7), kAlloc(2, 22, 8)})});
  EventBatch batch;
  ASSERT_TRUE(*source.next(&batch));
  EXPECT_THAT(batch.size_bytes, ElementsAre(11, 10, 20, 21, 31, 12, 22, 30));
  EXPECT_THAT(batch.time_ns, ElementsAre(1000, 5000, 7000, 7000, 7000, 7000, 8000, 9000));
  EXPECT_FALSE(*source.next(&batch));
}

TEST(SnapshotSource, WithoutTimesOneDeviceFollowsTheOther) {
  AllocatorTrace first = trace_of(0, {kAlloc(1, 10, 0), kAlloc(2, 20, 0)});
  AllocatorTrace second = trace_of(1, {kAlloc(1, 11, 0)});
  first.has_times = second.has_times = false;
  auto source = source_of({first, second});
  EXPECT_FALSE(source.info().can.times);
  EventBatch batch;
  ASSERT_TRUE(*source.next(&batch));
  EXPECT_THAT(batch.size_bytes, ElementsAre(10, 20, 11));
  EXPECT_THAT(batch.time_ns, ElementsAre(0, 0, 0));
}

TEST(SnapshotSource, LongTracesComeInBatches) {
  AllocatorTrace trace = trace_of(0, {});
  for (uint64_t i = 0; i < 10'000; ++i) trace.events.append(kAlloc(512 * i, 1, 1));
  auto source = source_of({trace});
  EventBatch batch;
  uint64_t seen = 0;
  while (*source.next(&batch)) {
    EXPECT_EQ(batch.first_event, seen);
    seen += batch.size();
  }
  EXPECT_EQ(seen, 10'000u);
  EXPECT_EQ(source.progress(), 1);
}

}  // namespace
}  // namespace gpumemprof

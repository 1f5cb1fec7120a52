#include "recording/device_history.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpumemprof {
namespace {

constexpr uint64_t kMib = 1 << 20;
constexpr uint64_t kBase = 0x7f0000000000;

HistoryEvent event(Action action, uint64_t address, uint64_t size, uint64_t requested = 0,
                   AllocatorDetail detail = {}) {
  return {.action = action,
          .address = address,
          .size_bytes = size,
          .requested_bytes = requested,
          .time_us = 7,
          .stack = 3,
          .detail = detail};
}
AllocatorDetail on_stream(int64_t stream) { return {.stream = stream}; }

std::vector<std::string> actions(const AllocatorTrace& trace) {
  std::vector<std::string> out;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    out.push_back(action_name(trace.events[i].action));
  }
  return out;
}

TEST(DeviceHistory, EndsWithTheSegmentsAndBlocksThatASnapshotWouldList) {
  DeviceHistory history(0, true);
  history.add(event(Action::kSegmentAlloc, kBase, 2 * kMib, 0, on_stream(64)));
  history.add(event(Action::kAlloc, kBase, 512, 100, on_stream(64)));
  history.add(event(Action::kAlloc, kBase + 512, 1024, 1000, on_stream(64)));
  history.add(event(Action::kFreeRequested, kBase, 512));
  const AllocatorTrace trace = history.finish();
  EXPECT_EQ(history.contradiction(), "");
  EXPECT_EQ(actions(trace), (std::vector<std::string>{"segment_alloc", "alloc", "alloc",
                                                      "free_requested", "free_completed"}));
  // A free has what its block was made with: 100 bytes asked for, on the stream of its segment.
  EXPECT_EQ(trace.events[4].size_bytes, 100u);
  EXPECT_EQ(trace.streams[trace.events[4].stream], 64);
  ASSERT_EQ(trace.segments.size(), 1u);
  const AllocatorSegment& segment = trace.segments[0];
  EXPECT_FALSE(segment.is_large);
  EXPECT_EQ(segment.allocated_bytes, 1024u);
  EXPECT_EQ(segment.requested_bytes, 1000u);
  ASSERT_EQ(segment.blocks.size(), 3u);
  EXPECT_EQ(segment.blocks[0].state, BlockState::kFree);
  EXPECT_EQ(segment.blocks[1].address, kBase + 512);
  EXPECT_EQ(segment.blocks[2].size_bytes, 2 * kMib - 1536);
}

TEST(DeviceHistory, ABlockThatAStreamStillUsesIsActiveUntilItIsDone) {
  for (const bool done : {false, true}) {
    DeviceHistory history(0, true);
    history.add(event(Action::kSegmentAlloc, kBase, 20 * kMib));
    history.add(event(Action::kAlloc, kBase, 4 * kMib, 4 * kMib - 5));
    history.add(event(Action::kFreeRequested, kBase, 4 * kMib, 0, {.is_delayed_free = true}));
    if (done) history.add(event(Action::kFreeCompleted, kBase, 0));
    const AllocatorTrace trace = history.finish();
    EXPECT_EQ(trace.events.size(), done ? 4u : 3u);
    EXPECT_TRUE(trace.segments[0].is_large);
    EXPECT_EQ(trace.segments[0].allocated_bytes, 0u);
    EXPECT_EQ(trace.segments[0].active_bytes, done ? 0 : 4 * kMib);
    EXPECT_EQ(trace.segments[0].blocks[0].state,
              done ? BlockState::kFree : BlockState::kPendingFree);
  }
}

TEST(DeviceHistory, MappedRangesThatTouchAreOneSegmentAndAHoleParts) {
  DeviceHistory history(0, true);
  history.add(event(Action::kSegmentMap, kBase, 20 * kMib));
  history.add(event(Action::kSegmentMap, kBase + 40 * kMib, 20 * kMib));
  history.add(event(Action::kSegmentMap, kBase + 20 * kMib, 20 * kMib));
  history.add(event(Action::kAlloc, kBase, 50 * kMib, 50 * kMib));
  history.add(event(Action::kFreeRequested, kBase, 50 * kMib));
  history.add(event(Action::kSegmentUnmap, kBase + 20 * kMib, 20 * kMib));
  const AllocatorTrace trace = history.finish();
  EXPECT_EQ(history.contradiction(), "");
  ASSERT_EQ(trace.segments.size(), 2u);
  EXPECT_EQ(trace.segments[0].size_bytes, 20 * kMib);
  EXPECT_EQ(trace.segments[1].address, kBase + 40 * kMib);
  EXPECT_TRUE(trace.segments[1].is_expandable && trace.segments[1].is_large);
}

TEST(DeviceHistory, ARefusalHasWhatTheDeviceHadFree) {
  DeviceHistory history(0, true);
  history.add(event(Action::kOom, 0, 4 * kMib, 0,
                    {.has_device_free = true, .device_free_bytes = 3 * kMib}));
  const AllocatorTrace trace = history.finish();
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].address, 3 * kMib);
  EXPECT_EQ(trace.events[0].size_bytes, 4 * kMib);
}

TEST(DeviceHistory, WhatCannotHaveHappenedEndsIt) {
  const HistoryEvent segment = event(Action::kSegmentAlloc, kBase, 2 * kMib);
  const HistoryEvent block = event(Action::kAlloc, kBase, 512, 512);
  const std::vector<std::pair<std::vector<HistoryEvent>, std::string>> cases = {
      {{block}, "a block outside every segment"},
      {{segment, segment}, "a segment over another"},
      {{segment, block, block}, "a block over a live one"},
      {{segment, event(Action::kFreeRequested, kBase, 512)}, "a free of a block that is not there"},
      {{segment, block, event(Action::kFreeCompleted, kBase, 0)}, "a free that nobody asked for"},
      {{event(Action::kSegmentFree, kBase, kMib)}, "memory that goes back and is not there"},
      {{segment, event(Action::kSegmentUnmap, kBase, kMib)}, "memory that goes back and is not"},
      {{event(Action::kOom, 0, 512)}, "a refusal without its reason"},
      {{event(Action::kSegmentAlloc, UINT64_MAX - 5, 512)}, "beyond the end of all addresses"},
  };
  for (const auto& [events, words] : cases) {
    DeviceHistory history(0, true);
    for (const HistoryEvent& each : events) history.add(each);
    history.add(segment);  // nothing after it is looked at
    EXPECT_NE(history.contradiction().find(words), std::string::npos)
        << history.contradiction() << " for " << words;
  }
}

}  // namespace
}  // namespace gpumemprof

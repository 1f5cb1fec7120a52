#include "recording/device_history.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kHistoryBase = 0x7f0000000000;

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
  history.add(event(Action::kSegmentAlloc, kHistoryBase, 2 * kMiB, 0, on_stream(64)));
  history.add(event(Action::kAlloc, kHistoryBase, 512, 100, on_stream(64)));
  history.add(event(Action::kAlloc, kHistoryBase + 512, 1024, 1000, on_stream(64)));
  history.add(event(Action::kFreeRequested, kHistoryBase, 512));
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
  EXPECT_EQ(segment.blocks[1].address, kHistoryBase + 512);
  EXPECT_EQ(segment.blocks[2].size_bytes, 2 * kMiB - 1536);
}

TEST(DeviceHistory, ABlockThatAStreamStillUsesIsActiveUntilItIsDone) {
  for (const bool done : {false, true}) {
    DeviceHistory history(0, true);
    history.add(event(Action::kSegmentAlloc, kHistoryBase, 20 * kMiB));
    history.add(event(Action::kAlloc, kHistoryBase, 4 * kMiB, 4 * kMiB - 5));
    history.add(
        event(Action::kFreeRequested, kHistoryBase, 4 * kMiB, 0, {.is_delayed_free = true}));
    if (done) history.add(event(Action::kFreeCompleted, kHistoryBase, 0));
    const AllocatorTrace trace = history.finish();
    EXPECT_EQ(trace.events.size(), done ? 4u : 3u);
    EXPECT_TRUE(trace.segments[0].is_large);
    EXPECT_EQ(trace.segments[0].allocated_bytes, 0u);
    EXPECT_EQ(trace.segments[0].active_bytes, done ? 0 : 4 * kMiB);
    EXPECT_EQ(trace.segments[0].blocks[0].state,
              done ? BlockState::kFree : BlockState::kPendingFree);
  }
}

TEST(DeviceHistory, MappedRangesThatTouchAreOneSegmentAndAHoleParts) {
  DeviceHistory history(0, true);
  history.add(event(Action::kSegmentMap, kHistoryBase, 20 * kMiB));
  history.add(event(Action::kSegmentMap, kHistoryBase + 40 * kMiB, 20 * kMiB));
  history.add(event(Action::kSegmentMap, kHistoryBase + 20 * kMiB, 20 * kMiB));
  history.add(event(Action::kAlloc, kHistoryBase, 50 * kMiB, 50 * kMiB));
  history.add(event(Action::kFreeRequested, kHistoryBase, 50 * kMiB));
  history.add(event(Action::kSegmentUnmap, kHistoryBase + 20 * kMiB, 20 * kMiB));
  const AllocatorTrace trace = history.finish();
  EXPECT_EQ(history.contradiction(), "");
  ASSERT_EQ(trace.segments.size(), 2u);
  EXPECT_EQ(trace.segments[0].size_bytes, 20 * kMiB);
  EXPECT_EQ(trace.segments[1].address, kHistoryBase + 40 * kMiB);
  EXPECT_TRUE(trace.segments[1].is_expandable && trace.segments[1].is_large);
}

TEST(DeviceHistory, ARefusalHasWhatTheDeviceHadFree) {
  DeviceHistory history(0, true);
  history.add(event(Action::kOom, 0, 4 * kMiB, 0,
                    {.has_device_free = true, .device_free_bytes = 3 * kMiB}));
  const AllocatorTrace trace = history.finish();
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].address, 3 * kMiB);
  EXPECT_EQ(trace.events[0].size_bytes, 4 * kMiB);
}

TEST(DeviceHistory, WhatCannotHaveHappenedEndsIt) {
  const HistoryEvent segment = event(Action::kSegmentAlloc, kHistoryBase, 2 * kMiB);
  const HistoryEvent block = event(Action::kAlloc, kHistoryBase, 512, 512);
  const std::vector<std::pair<std::vector<HistoryEvent>, std::string>> cases = {
      {{block}, "a block outside every segment"},
      {{segment, segment}, "overlapping segments"},
      {{segment, block, block}, "a block over a live one"},
      {{segment, event(Action::kFreeRequested, kHistoryBase, 512)}, "a free of an unknown block"},
      {{segment, block, event(Action::kFreeCompleted, kHistoryBase, 0)},
       "a completed free without a request"},
      {{event(Action::kSegmentFree, kHistoryBase, kMiB)}, "a release of memory that is not there"},
      {{segment, event(Action::kSegmentUnmap, kHistoryBase, kMiB)},
       "a release of memory that is not there"},
      {{event(Action::kOom, 0, 512)}, "a refused request without its segment"},
      {{event(Action::kSegmentAlloc, UINT64_MAX - 5, 512)}, "beyond the address space"},
  };
  for (const auto& [events, words] : cases) {
    DeviceHistory history(0, true);
    for (const HistoryEvent& each : events) history.add(each);
    history.add(segment);  // nothing after it is used
    EXPECT_NE(history.contradiction().find(words), std::string::npos)
        << history.contradiction() << " for " << words;
  }
}

}  // namespace
}  // namespace gpumemprof

// The small snapshots of fuzz/corpus: what their generator says is in them is what is read.
#include "readers/torch_snapshot/read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "readers/memory_file.h"
#include "readers/pickle/pickle_for_tests.h"

namespace gpumemprof {
namespace {

using ::testing::ElementsAre;

constexpr uint64_t kBase = 0x7F0000000000;
constexpr int64_t kStartUs = 1'700'000'000'000'000;

AllocatorSnapshot read(const std::string& name) {
  auto snapshot = read_torch_snapshot(std::string(GPUMEMPROF_SOURCE_DIR) +
                                      "/fuzz/corpus/fuzz_torch_snapshot/" + name);
  EXPECT_TRUE(snapshot) << name << ": " << (snapshot ? "" : snapshot.error().message);
  return snapshot ? std::move(*snapshot) : AllocatorSnapshot{};
}

AllocatorSnapshot read_bytes(const std::string& bytes) {
  MemoryFile file(bytes);
  auto snapshot = read_torch_snapshot(file);
  EXPECT_TRUE(snapshot) << (snapshot ? "" : snapshot.error().message);
  return snapshot ? std::move(*snapshot) : AllocatorSnapshot{};
}

std::vector<std::string> loss_of(const AllocatorSnapshot& snapshot) {
  std::vector<std::string> out;
  for (const LossReason& reason : snapshot.loss.reasons) out.push_back(reason.reason);
  return out;
}

class EveryLayout : public ::testing::TestWithParam<const char*> {};

TEST_P(EveryLayout, HoldsTheSameTrace) {
  const AllocatorSnapshot snapshot = read(GetParam());
  ASSERT_GE(snapshot.traces.size(), 1u);
  const AllocatorTrace& trace = snapshot.traces[0];
  EXPECT_EQ(trace.device, 0);
  ASSERT_EQ(trace.events.size(), 4u);
  const Action actions[] = {Action::kAlloc, Action::kFreeRequested, Action::kFreeCompleted,
                            Action::kAlloc};
  const uint64_t addresses[] = {kBase + 2048, kBase + 2048, kBase + 2048, kBase};
  const int64_t times[] = {0, 5, 5, 9};
  for (size_t i = 0; i < 4; ++i) {
    const AllocatorEvent event = trace.events[i];
    EXPECT_EQ(event.action, actions[i]);
    EXPECT_EQ(event.address, addresses[i]);
    EXPECT_EQ(event.size_bytes, i == 3 ? 1000u : 3000u);
    EXPECT_EQ(event.time_us, trace.has_times ? kStartUs + times[i] : 0);
    EXPECT_EQ(event.stream, 0u);
  }
  EXPECT_THAT(stack_lines(snapshot.tables, trace.events[0].stack),
              ElementsAre("?? at::empty", "train.py:20 step", "train.py:10 main"));
  EXPECT_THAT(stack_lines(snapshot.tables, trace.events[3].stack),
              ElementsAre("?? at::empty", "train.py:10 main"));
  EXPECT_EQ(trace.events[1].stack, trace.events[0].stack);
}

TEST_P(EveryLayout, HoldsTheSameSegment) {
  const AllocatorSnapshot snapshot = read(GetParam());
  ASSERT_EQ(snapshot.traces[0].segments.size(), 1u);
  const AllocatorSegment& segment = snapshot.traces[0].segments[0];
  EXPECT_EQ(segment.address, kBase);
  EXPECT_EQ(segment.size_bytes, 2u << 20);
  EXPECT_EQ(segment.allocated_bytes, 1536u);
  EXPECT_EQ(segment.active_bytes, 1536u);
  EXPECT_EQ(segment.requested_bytes, 1400u);
  EXPECT_FALSE(segment.is_large);
  ASSERT_EQ(segment.blocks.size(), 3u);
  EXPECT_EQ(segment.blocks[1].address, kBase + 1024);
  EXPECT_EQ(segment.blocks[1].requested_bytes, 400u);
  EXPECT_EQ(segment.blocks[1].state, BlockState::kAllocated);
  EXPECT_THAT(stack_lines(snapshot.tables, segment.blocks[1].stack),
              ElementsAre("train.py:10 main"));
  EXPECT_EQ(segment.blocks[2].address, kBase + 1536);
  EXPECT_EQ(segment.blocks[2].state, BlockState::kFree);
  EXPECT_EQ(segment.blocks[2].stack, 0u);
}

INSTANTIATE_TEST_SUITE_P(TorchSnapshot, EveryLayout,
                         ::testing::Values("torch_2_10.pickle", "torch_2_0.pickle",
                                           "torch_2_14.pickle", "protocol_2.pickle",
                                           "protocol_5.pickle", "torch_2_10.json"));

TEST(TorchSnapshot, TheReleaseIsToldByTheKeys) {
  const auto hint = [](const std::string& name) { return read(name).info.writer_version_hint; };
  EXPECT_EQ(hint("torch_2_10.pickle"), "torch 2.10 or 2.11");
  EXPECT_EQ(hint("torch_2_10.json"), "torch 2.10 or 2.11");
  EXPECT_EQ(hint("torch_2_14.pickle"), "torch 2.15 or later");
  EXPECT_EQ(hint("torch_2_0.pickle"), "torch 2.0 or earlier");
  EXPECT_EQ(hint("legacy_free.pickle"), "torch 2.1 or earlier");
  EXPECT_EQ(hint("segments_only.pickle"), "torch 2.1 or later");
  EXPECT_EQ(hint("nothing.pickle"), "");
}

TEST(TorchSnapshot, SettingsAndAnnotationsAreThoseOfTheFile) {
  const AllocatorSnapshot snapshot = read("torch_2_10.pickle");
  EXPECT_TRUE(snapshot.settings.known);
  EXPECT_EQ(snapshot.settings.conf, "max_split_size_mb:64");
  EXPECT_EQ(snapshot.settings.max_split_size_bytes, 64 << 20);
  EXPECT_EQ(snapshot.settings.garbage_collection_threshold, 0.5);
  EXPECT_FALSE(snapshot.settings.expandable_segments);
  EXPECT_THAT(snapshot.settings.roundup_power2_divisions,
              ElementsAre(std::pair(1u, 0u), std::pair(2u, 4u)));
  ASSERT_EQ(snapshot.annotations.size(), 2u);
  EXPECT_EQ(snapshot.tables.strings.get(snapshot.annotations[0].name), "Optimizer.step#SGD.step");
  EXPECT_TRUE(snapshot.annotations[0].is_begin);
  EXPECT_FALSE(snapshot.annotations[1].is_begin);
  EXPECT_EQ(snapshot.annotations[1].time_us, kStartUs + 8);
  EXPECT_TRUE(loss_of(snapshot).empty());
}

TEST(TorchSnapshot, AnOomTellsWhatTheDeviceHadFree) {
  const AllocatorSnapshot snapshot = read("expandable_oom.pickle");
  ASSERT_EQ(snapshot.traces.size(), 2u);
  EXPECT_TRUE(snapshot.traces[0].segments[0].is_expandable);
  EXPECT_FALSE(snapshot.traces[0].has_history);
  const AllocatorTrace& trace = snapshot.traces[1];
  EXPECT_EQ(trace.device, 1);
  EXPECT_EQ(trace.events[0].action, Action::kSegmentUnmap);
  EXPECT_EQ(trace.events[1].action, Action::kSegmentMap);
  const AllocatorEvent oom = trace.events[2];
  EXPECT_EQ(oom.action, Action::kOom);
  EXPECT_EQ(oom.address, 95'682'560u);
  EXPECT_EQ(oom.size_bytes, 5'308'694'528u);
  EXPECT_EQ(trace.streams[oom.stream], INT64_MAX);
  EXPECT_EQ(trace.events[3].action, Action::kSnapshot);
}

TEST(TorchSnapshot, PinnedMemoryIsADeviceOfItsOwnBehindTheOthers) {
  const AllocatorSnapshot snapshot = read("torch_2_14.pickle");
  ASSERT_EQ(snapshot.traces.size(), 2u);
  EXPECT_EQ(snapshot.traces[1].device, -1);
  EXPECT_EQ(snapshot.traces[1].events.size(), 4u);
  EXPECT_EQ(snapshot.traces[1].segments.size(), 1u);
  EXPECT_TRUE(snapshot.traces[0].has_pools);
  EXPECT_FALSE(snapshot.traces[1].has_pools);
  EXPECT_EQ(snapshot.loss.events, 0u);  // a mark changes no memory
  EXPECT_THAT(loss_of(snapshot), ElementsAre("1 marks 'annotate' in the trace are ignored"));
}

TEST(TorchSnapshot, WhatIsNotReadIsCounted) {
  const AllocatorSnapshot snapshot = read("odd.pickle");
  EXPECT_EQ(snapshot.loss.events, 1u);
  EXPECT_THAT(loss_of(snapshot), ElementsAre("events of the unknown action 'no_such_action'",
                                             "the unknown key 'notes' is not read"));
  const AllocatorTrace& trace = snapshot.traces[0];
  ASSERT_EQ(trace.events.size(), 2u);
  EXPECT_EQ(trace.events[0].address, UINT64_MAX - 511);  // an integer of nine bytes
  EXPECT_THAT(stack_lines(snapshot.tables, trace.events[0].stack),
              ElementsAre("train.py main", "train.py main"));
  EXPECT_EQ(snapshot.tables.stacks.node(trace.events[1].stack).depth, 1001u);
}

TEST(TorchSnapshot, AFreeOfOldReleasesIsACompletedOne) {
  const AllocatorSnapshot snapshot = read("legacy_free.pickle");
  EXPECT_EQ(snapshot.traces[0].events[1].action, Action::kFreeCompleted);
  EXPECT_FALSE(snapshot.traces[0].has_times);
}

TEST(TorchSnapshot, SegmentsWhoseBlocksDoNotFillThemAreSaid) {
  const AllocatorSnapshot snapshot = read_bytes(
      R"([{"device": 3, "address": 4096, "total_size": 2048, "allocated_size": 512, "active_size": 512,
           "requested_size": 1, "stream": 0, "segment_type": "large", "blocks": [
             {"address": 5120, "size": 512, "requested_size": 1, "state": "active_pending_free"},
             {"address": 4096, "size": 512, "requested_size": 1, "state": "inactive"}]}])");
  ASSERT_EQ(snapshot.traces.size(), 1u);
  EXPECT_EQ(snapshot.traces[0].device, 3);
  EXPECT_EQ(snapshot.traces[0].segments[0].blocks[0].address, 4096u);  // in order
  EXPECT_EQ(snapshot.traces[0].segments[0].blocks[1].state, BlockState::kPendingFree);
  EXPECT_THAT(loss_of(snapshot), ElementsAre("1 segments are not filled by their blocks",
                                             "1 segments have sums that differ from their blocks"));
}

// PyTorch's own pickler in C++ numbers a value behind it, and ends a list of any length at once.
TEST(TorchSnapshot, AListOfAnyLengthMayEndWithOneOpcode) {
  using namespace for_tests;
  std::string events = "](";
  uint32_t entry = 0;
  for (int i = 0; i < 10'000; ++i) {
    events += event("alloc", 512 * i, i + 1) + 'r' + little_endian(entry++, 4);
  }
  events += "er" + little_endian(entry++, 4);
  const AllocatorSnapshot snapshot = read_bytes(snapshot_of(events));
  ASSERT_EQ(snapshot.traces[0].events.size(), 10'000u);
  EXPECT_EQ(snapshot.traces[0].events[9'999].size_bytes, 10'000u);
  EXPECT_EQ(snapshot.traces[0].events[9'999].address, 512u * 9'999);
}

TEST(TorchSnapshot, TextsAcrossTheEdgesOfTheWindowAreWhole) {
  using namespace for_tests;
  // Texts of changing length around many multiples of the window's size.
  std::string frames, bytes = "\x80\x04}(" + text("device_traces") + "](](";
  for (int i = 0; i < 4000; ++i) {
    const std::string name(static_cast<size_t>(1 + i * 37 % 255), static_cast<char>('a' + i % 26));
    bytes += event("alloc", i, 1,
                   text("frames") + list({dict({text("filename"), text("f"), text("name"),
                                                text(name), text("line"), "K\x01"})}));
  }
  bytes += "eeu.";
  const AllocatorSnapshot snapshot = read_bytes(bytes);
  ASSERT_EQ(snapshot.traces[0].events.size(), 4000u);
  for (int i = 0; i < 4000; ++i) {
    const std::string name(static_cast<size_t>(1 + i * 37 % 255), static_cast<char>('a' + i % 26));
    ASSERT_THAT(stack_lines(snapshot.tables, snapshot.traces[0].events[i].stack),
                ElementsAre("f:1 " + name));
  }
}

TEST(TorchSnapshot, IsRecognisedByContent) {
  EXPECT_TRUE(looks_like_torch_snapshot("\x80\x04\x95"));
  EXPECT_TRUE(looks_like_torch_snapshot("\x80\x02}"));
  EXPECT_TRUE(looks_like_torch_snapshot(" {\n \"segments\": []"));
  EXPECT_TRUE(looks_like_torch_snapshot("{\"x\": 1, \"device_traces\": [[]]}"));
  EXPECT_TRUE(looks_like_torch_snapshot(
      "[{\"total_size\": 1, \"segment_type\": \"large\", \"blocks\": []}]"));
  EXPECT_FALSE(looks_like_torch_snapshot(""));
  EXPECT_FALSE(looks_like_torch_snapshot("\x80"));
  EXPECT_FALSE(looks_like_torch_snapshot("\x89GMP\x01"));
  EXPECT_FALSE(looks_like_torch_snapshot("[{\"timestamp\": 1.5, \"event_type\": \"allocation\"}]"));
  EXPECT_FALSE(looks_like_torch_snapshot("{\"events\": []}"));
  EXPECT_FALSE(looks_like_torch_snapshot("{\"timestamp\": 1}\n{\"timestamp\": 2}\n"));
  EXPECT_FALSE(looks_like_torch_snapshot("timestamp,segments\n1,2\n"));
}

TEST(TorchSnapshot, AMissingFileIsNotFound) {
  auto snapshot = read_torch_snapshot("/no/such/file");
  ASSERT_FALSE(snapshot);
  EXPECT_EQ(snapshot.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(is_torch_snapshot("/no/such/file"));
}

}  // namespace
}  // namespace gpumemprof

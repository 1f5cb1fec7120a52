// What is counted of a recording that grows, against files of our own making and a real one.
#include "live/recording_follower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "recording/fake_probe.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

using namespace format;

TEST(RecordingFollower, AFreeOfAGpuCountsOnceAlsoWhereItWaits) {
  for_tests::TempFolder folder;
  for_tests::FakeProbe probe(0x1234, 100, 64);
  auto& thread = probe.start_thread(11, "main");
  probe.define_device(&thread, 5, 1, 0);
  for (uint64_t i = 0; i < 4; ++i) probe.alloc(&thread, 1000 + i, 0x1000 * (i + 1), 512, 0, 5);
  const auto put = [&](RawAction action, uint64_t address, uint32_t what) {
    probe.record(&thread, pack(2000, address, 5, 0, action, what,
                               salt(thread.stream, thread.events_sequence)));
  };
  put(kRawFreeRequested, 0x1000, 0);  // free at once
  put(kRawWide, 0, kDetailDelayedFree), put(kRawFreeRequested, 0x2000, 0);
  put(kRawFreeCompleted, 0x2000, 0);  // its second half
  put(kRawWide, 0, kDetailDelayedFree), put(kRawFreeRequested, 0x3000, 0);
  put(kRawFreeRequested, 0x9000, 0);  // of a block that nobody saw made
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  auto follower = RecordingFollower::open(folder.file("a.gmp"));
  ASSERT_TRUE(follower);
  const auto state = follower->look();
  ASSERT_TRUE(state);
  ASSERT_EQ(state->devices.size(), 1u);
  EXPECT_EQ(state->devices[0].alloc_count, 4u);
  EXPECT_EQ(state->devices[0].free_count, 4u);
  EXPECT_EQ(state->devices[0].unmatched_frees, 1u);
  EXPECT_EQ(state->devices[0].live_count, 1u);
}

TEST(RecordingFollower, OfARealRecordingThereAreAsManyFreesAsPytorchWroteDown) {
  // The snapshot beside it, pools_2.15.pickle, has 346 alloc and 344 free_requested.
  auto follower =
      RecordingFollower::open(GPUMEMPROF_SOURCE_DIR "/tests/fixtures/recordings/pools_2.15.gmp");
  ASSERT_TRUE(follower);
  const auto state = follower->look();
  ASSERT_TRUE(state);
  const auto cuda = std::ranges::find(state->devices, "cuda:0", &FollowedDevice::name);
  ASSERT_NE(cuda, state->devices.end());
  EXPECT_EQ(cuda->alloc_count, 346u);
  EXPECT_EQ(cuda->free_count, 344u);
  EXPECT_EQ(cuda->live_count, 2u);
}

TEST(RecordingFollower, AFreeOfTheHostCountsOnce) {
  for_tests::TempFolder folder;
  for_tests::FakeProbe probe(0x1234, 100, 64);
  auto& thread = probe.start_thread(11, "main");
  for (uint64_t i = 0; i < 3; ++i) probe.alloc(&thread, 1000 + i, 0x1000 * (i + 1), 64, 0);
  probe.free(&thread, 2000, 0x2000);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  auto follower = RecordingFollower::open(folder.file("a.gmp"));
  ASSERT_TRUE(follower);
  const auto state = follower->look();
  ASSERT_TRUE(state);
  EXPECT_EQ(state->devices[0].free_count, 1u);
  EXPECT_EQ(state->devices[0].live_bytes, 128u);
}

TEST(RecordingFollower, WhatIsHeldByStackAddsUpToWhatIsLive) {
  for_tests::TempFolder folder;
  for_tests::FakeProbe probe(0x1234, 100, 64);
  auto& thread = probe.start_thread(11, "main");
  const uint32_t stack = probe.define_stack(&thread, {"main", "make"}, 7);
  for (uint64_t i = 0; i < 3; ++i) probe.alloc(&thread, 1000 + i, 0x1000 * (i + 1), 64, stack);
  probe.alloc(&thread, 1004, 0x9000, 1000, 0);
  probe.free(&thread, 2000, 0x2000);
  ASSERT_EQ(probe.save(folder.file("a.gmp")), 0);
  auto follower = RecordingFollower::open(folder.file("a.gmp"));
  ASSERT_TRUE(follower);
  EXPECT_FALSE(follower->look()->has_held);
  const auto state = follower->look(true);
  ASSERT_TRUE(state && state->has_held);
  const std::vector<FollowedHeld>& held = state->devices[0].held;
  ASSERT_EQ(held.size(), 2u);
  EXPECT_EQ(std::tuple(held[0].stack, held[0].bytes, held[0].count), std::tuple(0u, 1000u, 1u));
  EXPECT_EQ(std::tuple(held[1].bytes, held[1].count), std::tuple(128u, 2u));
  EXPECT_EQ(stack_lines(follower->tables(), held[1].stack).size(), 2u);
  EXPECT_FALSE(held[0].stream) << "a CPU has none";
}

TEST(RecordingFollower, FiguresThatContradictEachOtherDoNotWrap) {
  DeviceFigures figures;
  figures.actions[static_cast<size_t>(Action::kAlloc)] = 10;
  figures.live_count = 4, figures.repeated_allocs = 1, figures.unmatched_frees = 2;
  EXPECT_EQ(frees_of(figures), 7u);
  figures.live_count = 11;
  EXPECT_EQ(frees_of(figures), 2u);
  figures.repeated_allocs = UINT64_MAX;
  EXPECT_EQ(frees_of(figures), 2u);
}

}  // namespace
}  // namespace gpumemprof

// What is counted of a recording that grows, against files of our own making and a real one.
#include "live/recording_follower.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "recording/fake_probe.h"
#include "recording/file_sealer.h"
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

/// Tells how many blocks it was begun with and saw after, and how often it was begun anew.
class Observed final : public FollowObserver {
 public:
  std::unique_ptr<FollowObserver> copy() const override { return std::make_unique<Observed>(*this); }
  std::unique_ptr<FollowObserver> anew() const override {
    auto next = std::make_unique<Observed>();
    next->times_ = times_ + 1;
    return next;
  }
  void begin(const LiveState& before) override { before_ = before.live_count(); }
  void apply(const EventBatch& batch, LiveState* state) override {
    state->apply(batch), seen_ += batch.size();
  }
  FollowedCategories live_now(uint16_t, const LiveState&) override {
    return {.all = {{"before", 0, before_}, {"seen", 0, seen_}}, .absent_because = {}, .by_stack = {}};
  }
  std::vector<FollowedHeld> held_now(uint16_t device, const LiveState& state) override {
    const Holder all = state.holders_now(device).at(0);
    return {{all.stack, {}, std::nullopt, all.bytes, all.count}};
  }
  FollowedGrowth growth_now(uint16_t, const LiveState&, int64_t) override {
    return {.bytes_per_second = times_, .why_none = {}};
  }
  std::shared_ptr<const DriverMemories> driver_now() override { return nullptr; }

 private:
  uint64_t before_ = 0, seen_ = 0;
  double times_ = 0;
};

/// Blocks of 64, 65, … bytes, 1 ms apart, that all stay.
void keep_blocks(for_tests::FakeProbe* probe, uint64_t count) {
  probe->write_as_dead_process();
  auto& thread = probe->start_thread(11, "main");
  for (uint64_t i = 0; i < count; ++i)
    probe->alloc(&thread, 1000 + 1'000'000 * i, 0x1000 * (i + 1), 64 + i, 0);
}

/// `drop`: of the sealed events, up to a checkpoint.
void seal_until(const std::string& path, uint64_t end_ns, bool drop) {
  auto file = std::move(*open_file(path, FileMode::kReadWrite));
  auto sealer = FileSealer::open(file.get(), {.checkpoint_bytes = 1, .gather_bytes = 0});
  ASSERT_TRUE(sealer);
  ASSERT_TRUE((*sealer)->advance(end_ns, true));
  if (drop) {
    ASSERT_GT(*(*sealer)->drop_oldest(1), 0u);
  }
}

TEST(RecordingFollower, WhatWasDroppedBeforeItWasReadIsTakenFromTheCheckpoint) {
  for_tests::TempFolder folder;
  const std::string path = folder.file("a.gmp");
  for_tests::FakeProbe part(0x1234, 100, 64), whole(0x1234, 100, 64);
  keep_blocks(&part, 1000), keep_blocks(&whole, 5000);
  const FollowObserverFactory observed = [](const Tables&) { return std::make_unique<Observed>(); };
  for (const auto& observer : {FollowObserverFactory(), observed}) {
    ASSERT_EQ(part.save(path), 0);
    seal_until(path, 500'000'000, false);
    auto follower = RecordingFollower::open(path, 0, observer);
    ASSERT_TRUE(follower);
    ASSERT_EQ(follower->look()->devices.at(0).alloc_count, 1000u);
    ASSERT_EQ(whole.save(path), 0);
    seal_until(path, 4'000'000'000, true);
    const auto state = follower->look(true);
    ASSERT_TRUE(state);
    ASSERT_EQ(state->devices.size(), 1u);
    const FollowedDevice& cpu = state->devices[0];
    EXPECT_EQ(std::tuple(cpu.alloc_count, cpu.live_count, state->events),
              std::tuple(5000u, 5000u, 5000u));
    EXPECT_EQ(cpu.live_bytes, 5000u * 64 + 5000 * 4999 / 2);
    EXPECT_EQ(cpu.peak_bytes, cpu.live_bytes);
    EXPECT_TRUE(state->exact) << state->why_inexact;
    ASSERT_EQ(cpu.held.size(), 1u);
    EXPECT_EQ(cpu.held[0].bytes, cpu.live_bytes);
    // One that was begun anew, with what the checkpoint has.
    if (observer) {
      EXPECT_EQ(cpu.growth.bytes_per_second, 1);
      EXPECT_EQ(cpu.categories.all.at(0).count + cpu.categories.all.at(1).count, 5000u);
      EXPECT_GT(cpu.categories.all.at(0).count, 3000u);
    }
  }
}

TEST(RecordingFollower, AReadingOfLongAgoIsNotExact) {
  FollowedState state;
  state.looked_steady_ns = 1'000'000'000;
  EXPECT_EQ(why_not_exact(state, 3'000'000'000), "");
  EXPECT_EQ(why_not_exact(state, 14'500'000'000),
            "read 13 s before: reading takes longer than the interval");
  EXPECT_EQ(age_seconds(state, 14'500'000'000), 13.5);
  state.exact = false, state.why_inexact = "7 events are missing in the recording";
  EXPECT_EQ(why_not_exact(state, 14'500'000'000), "7 events are missing in the recording");
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

#include "trace/live_state.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "trace/memory_source.h"
#include "trace/naive_state_for_tests.h"

namespace gpumemprof {
namespace {

using Rows = std::vector<EventRow>;

EventBatch batch_of(const Rows& rows) {
  EventBatch batch;
  for (const EventRow& row : rows) append(&batch, row);
  return batch;
}

LiveState state_of(const Rows& rows) {
  LiveState state;
  state.apply(batch_of(rows));
  return state;
}

TEST(LiveState, PeakIsTheFirstEventAtWhichLiveBytesAreHighest) {
  LiveState state = state_of({{10, Action::kAlloc, 0x1, 100, 1},
                              {20, Action::kAlloc, 0x2, 50, 2},
                              {30, Action::kFreeCompleted, 0x2},
                              {40, Action::kAlloc, 0x3, 50, 3}});
  const DeviceState& device = state.devices()[0];
  EXPECT_EQ(device.peak_bytes, 150u);
  EXPECT_EQ(device.peak_count, 2u);
  EXPECT_EQ(device.peak_event, 1u);
  EXPECT_EQ(device.peak_time_ns, 20u);
  EXPECT_EQ(device.live_bytes, 150u);
  const std::vector<Holder> holders = state.holders_at_peak(0);
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].stack, 1u);
  EXPECT_EQ(holders[0].bytes, 100u);
  EXPECT_EQ(holders[1].stack, 2u);
  EXPECT_EQ(holders[1].bytes, 50u);
}

TEST(LiveState, AnAllocationAtALiveAddressReplacesTheBlockWithoutCountingAFree) {
  LiveState state = state_of({{1, Action::kAlloc, 0x1, 100, 1}, {2, Action::kAlloc, 0x1, 30, 2}});
  const DeviceState& device = state.devices()[0];
  EXPECT_EQ(device.repeated_allocs, 1u);
  EXPECT_EQ(device.live_bytes, 30u);
  EXPECT_EQ(device.live_count, 1u);
  EXPECT_EQ(device.peak_bytes, 100u);
  EXPECT_EQ(device.actions[size_t(Action::kFreeCompleted)], 0u);
}

TEST(LiveState, AFreeOfAnUnknownBlockIsCountedAndChangesNothing) {
  LiveState state = state_of({{1, Action::kAlloc, 0x1, 100, 1},
                              {2, Action::kFreeCompleted, 0x9},
                              {3, Action::kFreeRequested, 0x8, 7}});
  EXPECT_EQ(state.devices()[0].unmatched_frees, 2u);
  EXPECT_EQ(state.devices()[0].live_bytes, 100u);
}

TEST(LiveState, TheSecondHalfOfAFreeThatEndedItsBlockEndsNothing) {
  LiveState state = state_of({{1, Action::kAlloc, 0x1, 100, 1},
                              {2, Action::kFreeRequested, 0x1},
                              {3, Action::kFreeCompleted, 0x1}});
  EXPECT_EQ(state.devices()[0].unmatched_frees, 0u);
  EXPECT_EQ(state.devices()[0].live_bytes, 0u);
}

TEST(LiveState, OutOfMemoryAndSegmentsDoNotChangeWhatIsLive) {
  LiveState state =
      state_of({{1, Action::kOom, 0, 1 << 30}, {2, Action::kSegmentAlloc, 0x1000, 2 << 20}});
  EXPECT_EQ(state.devices()[0].actions[size_t(Action::kOom)], 1u);
  EXPECT_EQ(state.devices()[0].actions[size_t(Action::kSegmentAlloc)], 1u);
  EXPECT_EQ(state.devices()[0].peak_bytes, 0u);
}

TEST(LiveState, TheSameAddressOnAnotherDeviceIsAnotherBlock) {
  LiveState state = state_of({{1, Action::kAlloc, 0x1, 100, 1, 0, 0},
                              {2, Action::kAlloc, 0x1, 70, 1, 0, 3},
                              {3, Action::kFreeCompleted, 0x1, 0, 0, 0, 0}});
  ASSERT_EQ(state.devices().size(), 4u);
  EXPECT_EQ(state.devices()[0].live_bytes, 0u);
  EXPECT_EQ(state.devices()[3].live_bytes, 70u);
  EXPECT_EQ(state.live_count(), 1u);
}

TEST(LiveState, FrameworkTotalsGiveThePeakOfReservedMemory) {
  EventBatch batch = batch_of({{1, Action::kAlloc, 0x1, 10},
                               {2, Action::kAlloc, 0x2, 10},
                               {3, Action::kFreeCompleted, 0x1}});
  batch.first_event = 1000;
  batch.totals = {{0, 512, 2 << 20}, {1, 1024, 4 << 20}, {2, 512, 4 << 20}};
  LiveState state;
  state.apply(batch);
  const DeviceState& device = state.devices()[0];
  EXPECT_EQ(device.has_totals, 1u);
  EXPECT_EQ(device.framework_allocated_bytes, 512u);
  EXPECT_EQ(device.framework_reserved_bytes, 4u << 20);
  EXPECT_EQ(device.peak_reserved_bytes, 4u << 20);
  EXPECT_EQ(device.peak_reserved_event, 1001u);
  EXPECT_EQ(device.peak_reserved_time_ns, 2u);
}

TEST(LiveState, AFreeTellsWhichBlockEnded) {
  struct Seen {
    uint64_t bytes = 0, age = 0;
    uint32_t stack = 0;
  } seen;
  LiveState state;
  state.apply(
      batch_of({{5, Action::kAlloc, 0x1, 64, 9}, {25, Action::kFreeCompleted, 0x1}}),
      [](void* context, uint16_t, const LiveBlock& block, uint64_t time) {
        *static_cast<Seen*>(context) = {block.size_bytes, time - block.time_ns, block.stack};
      },
      &seen);
  EXPECT_EQ(seen.bytes, 64u);
  EXPECT_EQ(seen.age, 20u);
  EXPECT_EQ(seen.stack, 9u);
}

void expect_equal(const LiveState& state, const NaiveState& naive, uint64_t seed) {
  SCOPED_TRACE(seed);
  for (const auto& [index, device] : naive.devices) {
    ASSERT_LT(index, state.devices().size());
    const DeviceState& ours = state.devices()[index];
    ASSERT_EQ(ours.live_bytes, device.live_bytes());
    ASSERT_EQ(ours.live_count, device.blocks.size());
    ASSERT_EQ(ours.peak_bytes, device.peak_bytes);
    ASSERT_EQ(ours.peak_event, device.peak_event);
    ASSERT_EQ(ours.unmatched_frees, device.unmatched);
    ASSERT_EQ(ours.repeated_allocs, device.repeated);
    std::map<uint32_t, std::pair<uint64_t, uint64_t>> at_peak, now;
    for (const Holder& h : state.holders_at_peak(index)) at_peak[h.stack] = {h.bytes, h.count};
    for (const Holder& h : state.holders_now(index)) now[h.stack] = {h.bytes, h.count};
    ASSERT_EQ(at_peak, NaiveState::by_stack(device.at_peak));
    ASSERT_EQ(now, NaiveState::by_stack(device.blocks));
  }
}

TEST(LiveState, AgreesWithTheNaiveStateOnRandomEvents) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const Rows rows = random_rows(seed);
    const EventBatch events = batch_of(rows);
    NaiveState naive;
    for (size_t i = 0; i < rows.size(); ++i) naive.apply(rows[i], i);
    LiveState state;
    MemorySource source(events, 1 + seed % 50);
    EventBatch batch;
    while (*source.next(&batch)) state.apply(batch);
    expect_equal(state, naive, seed);
    if (HasFatalFailure()) return;
  }
}

TEST(LiveState, ACheckpointInTheMiddleChangesNothing) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const Rows rows = random_rows(seed);
    LiveState first = state_of({rows.begin(), rows.begin() + rows.size() / 2});
    std::string bytes;
    first.serialise(&bytes);
    Result<LiveState> restored = LiveState::parse(bytes);
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(restored->event_count(), rows.size() / 2);
    EventBatch rest = batch_of({rows.begin() + rows.size() / 2, rows.end()});
    rest.first_event = rows.size() / 2;
    restored->apply(rest);
    NaiveState naive;
    for (size_t i = 0; i < rows.size(); ++i) naive.apply(rows[i], i);
    expect_equal(*restored, naive, seed);
    std::string again, straight;
    restored->serialise(&again);
    state_of(rows).serialise(&straight);
    ASSERT_EQ(again, straight) << seed;
  }
}

TEST(LiveState, ADamagedCheckpointIsAnErrorOrAConsistentState) {
  std::string bytes;
  state_of(random_rows(7)).serialise(&bytes);
  ASSERT_TRUE(LiveState::parse(bytes));
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    Result<LiveState> parsed = LiveState::parse(std::string_view(bytes).substr(0, cut));
    ASSERT_FALSE(parsed) << cut;
    ASSERT_LE(parsed.error().offset.value(), cut);
  }
  ASSERT_FALSE(LiveState::parse(bytes + '\0'));
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ 1 << bit);
      Result<LiveState> parsed = LiveState::parse(flipped);
      if (!parsed) continue;  // a changed time or total is for the chunk's CRC to notice
      for (const DeviceState& device : parsed->devices()) {
        uint64_t sum = 0;
        device.blocks.each([&](uint64_t, const LiveBlock& block) { sum += block.size_bytes; });
        ASSERT_EQ(sum, device.live_bytes);
      }
    }
  }
}

TEST(LiveState, AHugeCountInACheckpointIsRefusedBeforeMemoryIsTaken) {
  std::string bytes = {1, 0, '\xff', '\xff', '\xff', '\xff', '\xff', '\xff', '\x7f'};
  Result<LiveState> parsed = LiveState::parse(bytes);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kBadInput);
  EXPECT_EQ(parsed.error().offset, 2u);
}

TEST(LiveState, AbsorbTranslatesIdsAndAddsUpStacksThatBecomeUnknown) {
  const LiveState part = state_of({{1, Action::kAlloc, 0x1, 100, 1, 0},
                                   {2, Action::kAlloc, 0x2, 50, 2, 1},
                                   {3, Action::kAlloc, 0x3, 8, 3, 0},
                                   {4, Action::kFreeCompleted, 0x2}});
  const uint32_t stacks[] = {0, 41};  // 2 and 3 are not known
  const uint32_t threads[] = {5};
  const uint16_t devices[] = {2};
  LiveState whole;
  ASSERT_TRUE(whole.absorb(part, {stacks, threads, devices}));
  EXPECT_EQ(whole.event_count(), 4u);
  const std::vector<Holder> holders = whole.holders_at_peak(2);
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].stack, 41u);
  EXPECT_EQ(holders[0].bytes, 100u);
  EXPECT_EQ(holders[1].stack, 0u);
  EXPECT_EQ(holders[1].bytes, 58u);
  EXPECT_EQ(whole.devices()[2].live_bytes, 108u);
  EXPECT_EQ(whole.devices()[2].blocks.find(0x1)->thread, 5u);
  EXPECT_FALSE(whole.absorb(part, {stacks, threads, devices})) << "the same device twice";
  LiveState other;
  EXPECT_FALSE(other.absorb(part, {stacks, threads, {}})) << "a device without a name";
}

}  // namespace
}  // namespace gpumemprof

#include "trace/trace_start.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "trace/live_state.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kBase = 0x7f0000000000;

AllocatorEvent event_of(Action action, uint64_t address, uint64_t size, uint32_t stack) {
  return {.address = address, .size_bytes = size, .stack = stack, .action = action};
}

/// Events on few addresses, in any order: most contradict one another. `is_sound`: none does.
AllocatorTrace random_trace(uint64_t seed, bool is_sound) {
  std::mt19937_64 random(seed);
  AllocatorTrace trace;
  trace.streams = {0};
  trace.pools = {{0, 0}};
  const uint64_t addresses = 1 + random() % 12;
  const bool in_two_steps = random() % 2 == 0;
  std::map<uint64_t, uint64_t> live;  // address -> size
  for (uint64_t a = 0; is_sound && a < addresses; ++a) {
    if (random() % 3 == 0) live[kBase + 512 * a] = 1 + random() % 500;
  }
  for (int i = 0; i < 60; ++i) {
    const uint64_t address = kBase + 512 * (random() % addresses), size = 1 + random() % 500;
    const auto stack = static_cast<uint32_t>(random() % 5);
    if (random() % 20 == 0) {
      trace.events.append(event_of(Action::kOom, size, 1 << 20, stack));
    } else if (is_sound ? !live.contains(address) : random() % 2 == 0) {
      trace.events.append(event_of(Action::kAlloc, address, size, stack));
      live[address] = size;
    } else {
      const uint64_t freed = is_sound ? live[address] : size;
      if (in_two_steps && (is_sound || random() % 4 != 0))
        trace.events.append(event_of(Action::kFreeRequested, address, freed, stack));
      if (is_sound || random() % 4 != 0)
        trace.events.append(event_of(Action::kFreeCompleted, address, freed, stack));
      live.erase(address);
    }
  }
  AllocatorSegment segment{.address = kBase, .size_bytes = 512 * addresses, .blocks = {}};
  for (uint64_t a = 0; a < addresses; ++a) {
    const uint64_t address = kBase + 512 * a;
    const bool is_live = is_sound ? live.contains(address) : random() % 3 == 0;
    segment.blocks.push_back({.address = address,
                              .size_bytes = 512,
                              .requested_bytes = is_live && is_sound ? live[address] : 100,
                              .stack = 6,
                              .state = is_live ? BlockState::kAllocated : BlockState::kFree});
  }
  trace.segments.push_back(segment);
  return trace;
}

LiveState followed(const AllocatorTrace& trace, const TraceStart& start, bool by_number) {
  LiveState state;
  for (const EarlierBlock& block : start.blocks) {
    const LiveBlock held{block.requested_bytes, LiveBlock::kUnknownTime, block.stack, 0};
    if (by_number) {
      state.adopt_numbered(0, block.number, held);
    } else {
      state.adopt(0, block.address, held);
    }
  }
  EventBatch batch;
  batch.frees_in_two_steps = start.facts.records_completions;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const AllocatorEvent event = trace.events[i];
    batch.time_ns.push_back(i), batch.address.push_back(event.address);
    batch.size_bytes.push_back(event.size_bytes), batch.stack.push_back(event.stack);
    batch.thread.push_back(0), batch.device.push_back(0), batch.action.push_back(event.action);
    if (by_number) batch.block.push_back(start.numbers[i]);
  }
  batch.block_count = start.number_count;
  state.apply(batch);
  return state;
}

TEST(TraceStart, BlocksFollowedByNumberAreThoseFollowedByAddress) {
  uint64_t sound = 0, contradicting = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    const AllocatorTrace trace = random_trace(seed, seed % 2 == 0);
    const TraceStart start = trace_start(trace);
    ++(start.contradictions == 0 ? sound : contradicting);
    const LiveState expected = followed(trace, start, false), state = followed(trace, start, true);
    ASSERT_EQ(state.devices().size(), expected.devices().size());
    const DeviceState &of = state.devices()[0], &as = expected.devices()[0];
    ASSERT_EQ(of.live_bytes, as.live_bytes);
    ASSERT_EQ(of.live_count, as.live_count);
    ASSERT_EQ(as.blocks.size(), as.live_count);
    ASSERT_EQ(of.peak_bytes, as.peak_bytes);
    ASSERT_EQ(of.peak_event, as.peak_event);
    ASSERT_EQ(of.unmatched_frees, as.unmatched_frees);
    ASSERT_EQ(of.repeated_allocs, as.repeated_allocs);
    for (const bool at_peak : {true, false}) {
      const auto holders = at_peak ? state.holders_at_peak(0) : state.holders_now(0);
      const auto expect = at_peak ? expected.holders_at_peak(0) : expected.holders_now(0);
      ASSERT_EQ(holders.size(), expect.size());
      for (size_t i = 0; i < holders.size(); ++i) {
        ASSERT_EQ(holders[i].stack, expect[i].stack);
        ASSERT_EQ(holders[i].bytes, expect[i].bytes);
      }
    }
  }
  EXPECT_GE(sound, 1500u);
  EXPECT_GE(contradicting, 1000u);
}

TEST(TraceStart, LiveBlocksHaveDifferentNumbersAndOneIsGivenAgainOnceItsBlockIsGone) {
  AllocatorTrace trace;
  trace.streams = {0};
  for (uint64_t round = 0; round < 100; ++round) {
    for (const Action action : {Action::kAlloc, Action::kFreeCompleted}) {
      for (uint64_t i = 0; i < 3; ++i)
        trace.events.append(event_of(action, kBase + 512 * (3 * round + i), 100, 1));
    }
  }
  const TraceStart start = trace_start(trace);
  ASSERT_EQ(start.contradictions, 0u);
  EXPECT_EQ(start.number_count, 3u);
  std::map<uint32_t, uint64_t> live;  // number -> address
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const AllocatorEvent event = trace.events[i];
    ASSERT_LT(start.numbers[i], start.number_count);
    if (event.action == Action::kAlloc) {
      ASSERT_TRUE(live.emplace(start.numbers[i], event.address).second);
    } else {
      ASSERT_EQ(live[start.numbers[i]], event.address);
      live.erase(start.numbers[i]);
    }
  }
  EXPECT_FALSE(start.number_of(kBase));
}

TEST(TraceStart, WhereEveryFreeStillWaitsARequestEndsNoBlock) {
  AllocatorTrace trace;
  trace.streams = {0};
  AllocatorSegment segment{.address = kBase, .size_bytes = 512 * 3, .blocks = {}};
  for (uint64_t i = 0; i < 3; ++i) {
    trace.events.append(event_of(Action::kAlloc, kBase + 512 * i, 100, 1));
    trace.events.append(event_of(Action::kFreeRequested, kBase + 512 * i, 100, 2));
    segment.blocks.push_back({.address = kBase + 512 * i,
                              .size_bytes = 512,
                              .requested_bytes = 100,
                              .state = BlockState::kPendingFree});
  }
  trace.segments.push_back(segment);
  const TraceStart start = trace_start(trace);
  EXPECT_EQ(start.contradictions, 0u);
  EXPECT_TRUE(start.blocks.empty());
  EXPECT_EQ(followed(trace, start, true).devices()[0].peak_bytes, 300u);
  for (AllocatorBlock& block : trace.segments[0].blocks) block.state = BlockState::kFree;
  EXPECT_EQ(followed(trace, trace_start(trace), true).devices()[0].peak_bytes, 100u);
}

TEST(TraceStart, WhereTheTraceContradictsItselfAnAddressKeepsItsNumber) {
  AllocatorTrace trace;
  trace.streams = {0};
  for (const uint64_t address : {1, 2, 1, 1, 2, 3})
    trace.events.append(event_of(Action::kAlloc, kBase + 512 * address, 100, 1));
  trace.events.append(event_of(Action::kOom, 0, 100, 1));
  const TraceStart start = trace_start(trace);
  EXPECT_EQ(start.contradictions, 3u);
  EXPECT_EQ(start.number_count, 3u);
  EXPECT_EQ(start.numbers[0], start.numbers[2]);
  EXPECT_EQ(start.numbers[0], start.numbers[3]);
  EXPECT_EQ(start.numbers[1], start.numbers[4]);
  EXPECT_EQ(start.numbers[6], TraceStart::kNoNumber);
  EXPECT_EQ(start.number_of(kBase + 512), start.numbers[0]);
  EXPECT_EQ(start.number_of(kBase + 512 * 3), start.numbers[5]);
  EXPECT_FALSE(start.number_of(kBase + 512 * 4));
}

}  // namespace
}  // namespace gpumemprof

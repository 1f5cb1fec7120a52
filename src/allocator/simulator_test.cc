#include "allocator/simulator.h"

#include <gtest/gtest.h>

#include <random>

#include "allocator/layout.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kFirst = 0x100000000000;  // where the default addresses begin

Simulator simulator(AllocatorConfig config = {}, const char* release = "2.13") {
  return Simulator(config, *find_release(release));
}

AllocatorConfig with_capacity(uint64_t bytes) {
  AllocatorConfig config;
  config.capacity_bytes = bytes;
  return config;
}

TEST(Simulator, SmallBlocksShareASegmentOfTwoMiB) {
  Simulator s = simulator();
  const BlockId a = s.malloc({.requested_bytes = 1000});
  const BlockId b = s.malloc({.requested_bytes = 1});
  EXPECT_EQ(s.block(a).address, kFirst);
  EXPECT_EQ(s.block(b).address, kFirst + 1024);
  EXPECT_EQ(s.statistics().reserved.current, 2 * kMiB);
  EXPECT_EQ(s.statistics().allocated.current, 1536u);
  EXPECT_EQ(s.statistics().requested.current, 1001u);
}

TEST(Simulator, LargeBlocksSplitOnlyWhatIsWorthIt) {
  Simulator s = simulator();
  const BlockId a = s.malloc({.requested_bytes = 19 * kMiB});
  EXPECT_EQ(s.block(a).size_bytes, 20 * kMiB) << "a remainder of 1 MiB stays with the block";
  const BlockId b = s.malloc({.requested_bytes = 5 * kMiB});
  EXPECT_EQ(s.block(b).size_bytes, 5 * kMiB);
  EXPECT_EQ(s.statistics().reserved.current, 40 * kMiB);
}

TEST(Simulator, NeighboursMergeWhenBothAreFree) {
  Simulator s = simulator();
  const BlockId a = s.malloc({.requested_bytes = 6 * kMiB});
  const BlockId b = s.malloc({.requested_bytes = 6 * kMiB});
  EXPECT_TRUE(s.free_completed(a));
  EXPECT_EQ(s.block(s.malloc({.requested_bytes = 7 * kMiB})).address, kFirst + 12 * kMiB)
      << "6 MiB at the front are too few";
  EXPECT_TRUE(s.free_completed(b));
  EXPECT_EQ(s.block(s.malloc({.requested_bytes = 7 * kMiB})).address, kFirst) << "now 12 MiB are";
}

TEST(Simulator, ADoubleFreeChangesNothing) {
  Simulator s = simulator();
  const BlockId a = s.malloc({.requested_bytes = 1000});
  EXPECT_TRUE(s.free_requested(a));
  EXPECT_FALSE(s.free_requested(a));
  EXPECT_TRUE(s.free_completed(a));
  EXPECT_FALSE(s.free_completed(a));
  EXPECT_FALSE(s.free_completed(12345));
  EXPECT_EQ(s.statistics().active.current, 0u);
}

TEST(Simulator, ABlockThatWaitsForAStreamIsActiveButNotAllocated) {
  Simulator s = simulator();
  const BlockId a = s.malloc({.requested_bytes = 3 * kMiB});
  s.free_requested(a);
  EXPECT_EQ(s.statistics().allocated.current, 0u);
  EXPECT_EQ(s.statistics().active.current, 3 * kMiB);
  const BlockId b = s.malloc({.requested_bytes = 3 * kMiB});
  EXPECT_EQ(s.block(b).address, kFirst + 3 * kMiB) << "its place is not free yet";
}

TEST(Simulator, StreamsAndPoolsDoNotServeOneAnother) {
  Simulator s = simulator();
  s.free_completed(s.malloc({.requested_bytes = 1000}));
  const BlockId other_stream = s.malloc({.requested_bytes = 1000, .stream = 1});
  const BlockId other_pool = s.malloc({.requested_bytes = 1000, .pool = 1});
  EXPECT_EQ(s.block(other_stream).address, kFirst + 4 * kMiB);
  EXPECT_EQ(s.block(other_pool).address, kFirst + 8 * kMiB);
  s.free_completed(other_pool);
  s.empty_cache();
  EXPECT_EQ(s.statistics().reserved.current, 4 * kMiB) << "a private pool keeps its segments";
  s.release_pool(1);
  s.empty_cache();
  EXPECT_EQ(s.statistics().reserved.current, 2 * kMiB);
}

TEST(Simulator, ARetryGivesFreeSegmentsBackAndThenRefuses) {
  Simulator s = simulator(with_capacity(64 * kMiB));
  s.free_completed(s.malloc({.requested_bytes = 30 * kMiB}));
  EXPECT_NE(s.malloc({.requested_bytes = 40 * kMiB}), kNoBlock);
  EXPECT_EQ(s.statistics().num_alloc_retries, 1u);
  EXPECT_EQ(s.statistics().num_ooms, 0u);
  EXPECT_EQ(s.malloc({.requested_bytes = 30 * kMiB}), kNoBlock);
  EXPECT_EQ(s.statistics().num_alloc_retries, 2u);
  EXPECT_EQ(s.statistics().num_ooms, 1u);
  EXPECT_EQ(s.statistics().reserved.peak, 40 * kMiB);
}

TEST(Simulator, ThrowingAtOnceGivesNothingBackAndCountsNothing) {
  AllocatorConfig config = with_capacity(64 * kMiB);
  config.throws_at_refusal = true;
  Simulator s = simulator(config);
  s.free_completed(s.malloc({.requested_bytes = 30 * kMiB}));
  EXPECT_EQ(s.malloc({.requested_bytes = 40 * kMiB}), kNoBlock);
  EXPECT_EQ(s.statistics().num_alloc_retries, 0u);
  EXPECT_EQ(s.statistics().num_ooms, 0u);
  EXPECT_EQ(s.statistics().reserved.current, 30 * kMiB);
}

TEST(Simulator, ARetryWaitsForStreamsAndTheLateFreeIsHarmless) {
  Simulator s = simulator(with_capacity(64 * kMiB));
  const BlockId waiting = s.malloc({.requested_bytes = 40 * kMiB});
  s.free_requested(waiting);
  const BlockId b = s.malloc({.requested_bytes = 60 * kMiB});
  ASSERT_NE(b, kNoBlock);
  EXPECT_EQ(s.statistics().active.current, 60 * kMiB);
  EXPECT_TRUE(s.free_completed(waiting));
  EXPECT_FALSE(s.free_completed(waiting));
  EXPECT_EQ(s.statistics().active.current, 60 * kMiB);
}

TEST(Simulator, ExpandableSegmentsGrowInPlace) {
  AllocatorConfig config = with_capacity(1024 * kMiB);
  config.expandable_segments = true;
  Simulator s = simulator(config);
  const BlockId a = s.malloc({.requested_bytes = 15 * kMiB});
  const BlockId b = s.malloc({.requested_bytes = 15 * kMiB});
  EXPECT_EQ(s.block(b).address, s.block(a).address + 15 * kMiB);
  EXPECT_EQ(s.statistics().reserved.current, 40 * kMiB) << "two pages of 20 MiB";
  s.free_completed(b);
  s.empty_cache();
  EXPECT_EQ(s.statistics().reserved.current, 20 * kMiB) << "the first page is pinned";
  EXPECT_EQ(segments(s).size(), 1u);
}

TEST(Simulator, GarbageIsCollectedOnlyUnderAFraction) {
  for (const bool limited : {false, true}) {
    AllocatorConfig config = with_capacity(200 * kMiB);
    config.garbage_collection_threshold = 0.5;
    if (limited) config.memory_fraction = 0.9;
    Simulator s = simulator(config);
    s.free_completed(s.malloc({.requested_bytes = 60 * kMiB}));
    const BlockId held = s.malloc({.requested_bytes = 70 * kMiB});
    ASSERT_NE(held, kNoBlock);
    ASSERT_NE(s.malloc({.requested_bytes = 30 * kMiB, .stream = 1}), kNoBlock);
    // 130 MiB are more than half of 180: the free segment goes before a new one is asked for.
    EXPECT_EQ(s.statistics().reserved.current, (limited ? 100 : 160) * kMiB);
    EXPECT_EQ(s.statistics().num_alloc_retries, 0u);
  }
}

TEST(Simulator, SizesThatNobodyAsksForAreRefused) {
  Simulator s = simulator();
  EXPECT_EQ(s.malloc({.requested_bytes = ~0ull}), kNoBlock);
  EXPECT_EQ(s.malloc({.requested_bytes = 1ull << 62}), kNoBlock);
  EXPECT_EQ(s.statistics().num_ooms, 2u);
  EXPECT_EQ(s.statistics().reserved.current, 0u);
}

TEST(Layout, TellsSlackFromFragmentation) {
  Simulator s = simulator();
  const BlockId whole = s.malloc({.requested_bytes = 30 * kMiB});
  const BlockId front = s.malloc({.requested_bytes = 6 * kMiB, .stack = 1});
  const BlockId pin = s.malloc({.requested_bytes = 2 * kMiB, .stack = 7});
  s.free_completed(whole);
  s.free_completed(front);
  const FreeMemory free = free_memory(s);
  EXPECT_EQ(free.cache_slack_bytes, 30 * kMiB);
  EXPECT_EQ(free.fragmented_bytes, 18 * kMiB) << "6 before and 12 behind the pinning block";
  EXPECT_EQ(free.largest_bytes, 30 * kMiB);
  EXPECT_EQ(free.blocks_by_log2[22], 1u);
  EXPECT_EQ(free.bytes_by_log2[22], 6 * kMiB);
  ASSERT_EQ(free.lists.size(), 1u);
  EXPECT_EQ(free.lists[0].blocks, 3u);
  EXPECT_EQ(free.lists[0].bytes, 48 * kMiB);
  (void)pin;
}

TEST(Layout, NamesTheBlocksThatStandInTheWay) {
  Simulator s = simulator();
  const BlockId front = s.malloc({.requested_bytes = 9 * kMiB});
  s.malloc({.requested_bytes = 2 * kMiB, .stack = 7});
  s.free_completed(front);
  const Obstacle in_the_way = obstacle(s, {.requested_bytes = 15 * kMiB});
  EXPECT_EQ(in_the_way.rounded_bytes, 15 * kMiB);
  EXPECT_EQ(in_the_way.free_bytes, 18 * kMiB);
  EXPECT_EQ(in_the_way.largest_usable_bytes, 9 * kMiB);
  ASSERT_EQ(in_the_way.pinned.size(), 1u);
  const SegmentView& segment = in_the_way.pinned[0];
  EXPECT_EQ(segment.active_bytes, 2 * kMiB);
  ASSERT_EQ(segment.blocks.size(), 3u);
  EXPECT_EQ(s.block(segment.blocks[1]).stack, 7u);
}

TEST(Layout, AFreeBlockOfAnotherStreamOrPoolThatWouldDoIsElsewhere) {
  Simulator s = simulator();
  for (uint16_t pool : {0, 1}) {
    const auto stream = static_cast<uint16_t>(pool == 0 ? 1 : 0);
    const BlockId most = s.malloc({.requested_bytes = 30 * kMiB, .stream = stream, .pool = pool});
    s.free_completed(most);
    s.malloc({.requested_bytes = (pool + 2) * kMiB, .stream = stream, .pool = pool});  // pins it
  }
  const Obstacle of_stream = obstacle(s, {.requested_bytes = 28 * kMiB});
  ASSERT_TRUE(of_stream.elsewhere);
  EXPECT_EQ(of_stream.elsewhere->largest_free_bytes, 28 * kMiB);
  EXPECT_EQ(of_stream.elsewhere->stream, 1);
  EXPECT_EQ(obstacle(s, {.requested_bytes = 27 * kMiB, .stream = 1}).elsewhere->pool, 1);
  EXPECT_FALSE(obstacle(s, {.requested_bytes = 29 * kMiB}).elsewhere);
}

TEST(Layout, FreeBytesAreThoseOfTheFreeBlocksOfTheSamePoolStreamAndClass) {
  AllocatorConfig config;
  config.expandable_segments = true;
  for (const AllocatorConfig& each : {AllocatorConfig{}, config}) {
    Simulator s(each, newest_release());
    std::mt19937 chance(3);
    std::vector<BlockId> blocks;
    for (int i = 0; i < 2000; ++i) {
      const auto stream = static_cast<uint16_t>(chance() % 3);
      if (blocks.size() > 100 || (!blocks.empty() && chance() % 3 == 0)) {
        std::swap(blocks[chance() % blocks.size()], blocks.back());
        s.free_completed(blocks.back());
        blocks.pop_back();
      } else {
        blocks.push_back(s.malloc(
            {.requested_bytes = 1 + chance() % (i % 2 ? 4 << 20 : 9000), .stream = stream}));
      }
      if (i % 500 == 499) s.empty_cache();
      if (i % 8 != 0) continue;
      for (uint16_t of = 0; of < 3; ++of) {
        for (const uint64_t bytes : {uint64_t{512}, 2 * kMiB}) {
          uint64_t expected = 0;
          for (const SegmentView& view : segments(s)) {
            if (view.stream == of && view.is_large == (bytes > kMiB))
              expected += view.size_bytes - view.active_bytes;
          }
          ASSERT_EQ(free_bytes(s, {.requested_bytes = bytes, .stream = of}), expected);
        }
      }
    }
  }
}

/// `count` free pieces of 1 MiB that live ones pin, and then as many requests that do not fit.
uint64_t steps_of_refusals(int count) {
  AllocatorConfig config;
  config.capacity_bytes = uint64_t(count) * 20 * kMiB;
  Simulator simulator(config, newest_release());
  std::vector<BlockId> blocks;
  for (int i = 0; i < 2 * count; ++i) blocks.push_back(simulator.malloc({2 * kMiB}));
  for (int i = 0; i < 2 * count; i += 2) simulator.free_completed(blocks[i]);
  const uint64_t before = simulator.steps();
  for (int i = 0; i < count; ++i)
    EXPECT_EQ(simulator.malloc({uint64_t(count) * 30 * kMiB}), kNoBlock);
  EXPECT_EQ(simulator.statistics().num_ooms, uint64_t(count));
  EXPECT_EQ(simulator.statistics().num_alloc_retries, uint64_t(count));
  return simulator.steps() - before;
}

TEST(SimulatorSteps, ARefusalDoesNotLookAtWhatCannotGoBack) {
  EXPECT_LE(steps_of_refusals(1000), 1000u);
  EXPECT_LE(steps_of_refusals(2000), 2000u);
}

/// Unmapped holes of a page between live blocks; each larger request looks at all of them.
void make_holes(Simulator* simulator, int count) {
  std::vector<BlockId> blocks;
  for (int i = 0; i < 2 * count; ++i) blocks.push_back(simulator->malloc({20 * kMiB}));
  for (int i = 0; i < 2 * count; i += 2) simulator->free_completed(blocks[i]);
  simulator->empty_cache();
}

TEST(SimulatorSteps, ASearchThatNoStructureShortensEndsAtTheLimit) {
  AllocatorConfig config;
  config.expandable_segments = true;
  Simulator simulator(config, newest_release());
  make_holes(&simulator, 500);
  const uint64_t before = simulator.steps();
  EXPECT_NE(simulator.malloc({40 * kMiB}), kNoBlock);
  const uint64_t of_one = simulator.steps() - before;
  EXPECT_GE(of_one, 500u);
  EXPECT_LE(of_one, 1010u);
  simulator.limit_steps(simulator.steps() + 10 * of_one);
  int served = 0;
  while (simulator.malloc({40 * kMiB}) != kNoBlock) ++served;
  EXPECT_GE(served, 9);
  EXPECT_LE(served, 11);
  EXPECT_TRUE(simulator.gave_up());
  EXPECT_EQ(simulator.statistics().num_ooms, 0u);
  const uint64_t at_the_end = simulator.steps();
  EXPECT_EQ(simulator.malloc({512}), kNoBlock);
  EXPECT_EQ(simulator.steps(), at_the_end);
}

}  // namespace
}  // namespace gpumemprof

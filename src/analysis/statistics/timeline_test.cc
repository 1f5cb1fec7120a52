#include "analysis/statistics/timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace gpumemprof {
namespace {

TEST(Timeline, WidensByDoublingAndKeepsEveryMaximum) {
  Timeline timeline(0, 4, 0);
  for (uint64_t us = 0; us < 16; ++us) timeline.add(us * 1024, us == 5 ? 900 : 100);
  timeline.finish(15 * 1024);
  EXPECT_EQ(timeline.bucket_ns(), 4096u);
  ASSERT_EQ(timeline.buckets().size(), 4u);
  EXPECT_EQ(timeline.buckets()[1].max_bytes, 900u);
  EXPECT_EQ(timeline.buckets()[1].min_bytes, 100u);
  EXPECT_EQ(timeline.buckets()[2].max_bytes, 100u);
}

TEST(Timeline, AQuietBucketKeepsTheLevelBefore) {
  Timeline timeline(1'000'000, 8, 70);
  timeline.add_alloc(1'000'000 + 2 * 1024, 150, 80);
  timeline.finish(1'000'000 + 4 * 1024);
  const auto& buckets = timeline.buckets();
  ASSERT_EQ(buckets.size(), 5u);
  EXPECT_EQ(buckets[0].last_bytes, 70u);
  EXPECT_EQ(buckets[2].min_bytes, 70u) << "the bucket began at the level before";
  EXPECT_EQ(buckets[2].max_bytes, 150u);
  EXPECT_EQ(buckets[2].alloc_count, 1u);
  EXPECT_EQ(buckets[2].alloc_bytes, 80u);
  EXPECT_EQ(buckets[4].min_bytes, 150u);
}

TEST(Timeline, TimesAtBothEndsOfTheClockStayInBounds) {
  Timeline timeline(500, 3, 0);
  timeline.add(0, 1);  // before the start
  timeline.add(UINT64_MAX, 2);
  timeline.finish(0);
  EXPECT_LE(timeline.buckets().size(), 4u);
  EXPECT_EQ(timeline.buckets().front().max_bytes, 1u);
  EXPECT_EQ(timeline.buckets().back().max_bytes, 2u);
}

TEST(Timeline, AgreesWithASecondPassOverRandomTimes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<std::pair<uint64_t, uint64_t>> events;
    uint64_t time = 7'000'000;
    const uint64_t start = time;
    for (int i = 0; i < 200; ++i) {
      events.emplace_back(time, random() % 1000);
      time += random() % (1 << (random() % 20));
    }
    Timeline timeline(start, 16, 33);
    for (auto [at, level] : events) timeline.add_alloc(at, level, 1);
    timeline.finish(events.back().first);
    const uint64_t width = timeline.bucket_ns();
    ASSERT_EQ(timeline.buckets().size(), (events.back().first - start) / width + 1);
    uint64_t level = 33;
    for (size_t b = 0; b < timeline.buckets().size(); ++b) {
      uint64_t low = level, high = level, count = 0;
      for (auto [at, value] : events) {
        if ((at - start) / width != b) continue;
        low = std::min(low, value), high = std::max(high, value), level = value, ++count;
      }
      ASSERT_EQ(timeline.buckets()[b].min_bytes, low) << seed;
      ASSERT_EQ(timeline.buckets()[b].max_bytes, high) << seed;
      ASSERT_EQ(timeline.buckets()[b].last_bytes, level) << seed;
      ASSERT_EQ(timeline.buckets()[b].alloc_count, count) << seed;
    }
  }
}

}  // namespace
}  // namespace gpumemprof

#include "trace/allocator_trace.h"

#include <gtest/gtest.h>

#include <random>

namespace gpumemprof {
namespace {

bool same(const AllocatorEvent& a, const AllocatorEvent& b) {
  return a.address == b.address && a.size_bytes == b.size_bytes && a.time_us == b.time_us &&
         a.stack == b.stack && a.stream == b.stream && a.pool == b.pool && a.action == b.action;
}

TEST(AllocatorEvents, EveryValueSurvivesThePackedForm) {
  std::mt19937_64 random(1);
  // Around the edges of the packed fields, and anything else now and then.
  const auto around = [&](int bits) {
    const uint64_t edge = uint64_t{1} << bits;
    const uint64_t values[] = {0, 1, edge - 1, edge, edge + 1, random(), UINT64_MAX};
    return values[random() % (random() % 8 == 0 ? 7 : 3)];
  };
  std::vector<AllocatorEvent> expected;
  AllocatorEvents events;
  int64_t time_us = 0;
  for (int i = 0; i < 20'000; ++i) {
    time_us = random() % 64 == 0 ? static_cast<int64_t>(random()) : time_us + 1;
    expected.push_back({.address = around(48),
                        .size_bytes = around(48),
                        .time_us = time_us,
                        .stack = static_cast<uint32_t>(random()),
                        .stream = static_cast<uint16_t>(random()),
                        .pool = static_cast<uint16_t>(around(12)),
                        .action = static_cast<Action>(1 + random() % (kActionCount - 1))});
    events.append(expected.back());
  }
  ASSERT_EQ(events.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) ASSERT_TRUE(same(events[i], expected[i])) << i;
}

TEST(AllocatorEvents, AMillionAreThereAsTheyCameAndACopyHasThemToo) {
  AllocatorEvents events;
  for (uint64_t i = 0; i < 1'000'000; ++i) {
    events.append({.address = i << 9, .size_bytes = i, .time_us = static_cast<int64_t>(i)});
  }
  const AllocatorEvents copy = events;
  events = {};
  ASSERT_EQ(copy.size(), 1'000'000u);
  for (uint64_t i = 0; i < copy.size(); ++i) {
    ASSERT_EQ(copy[i].address, i << 9);
    ASSERT_EQ(copy[i].time_us, static_cast<int64_t>(i));
  }
}

TEST(AllocatorEvents, TimesMayGoBackwards) {
  AllocatorEvents events;
  events.append({.time_us = 1000});
  events.append({.time_us = 999});
  events.append({.time_us = INT64_MIN});
  EXPECT_EQ(events[1].time_us, 999);
  EXPECT_EQ(events[2].time_us, INT64_MIN);
}

}  // namespace
}  // namespace gpumemprof

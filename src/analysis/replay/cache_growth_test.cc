#include "analysis/replay/cache_growth.h"

#include <gtest/gtest.h>

#include "base/size.h"

namespace gpumemprof {
namespace {

TEST(CacheGrowth, CountsEveryGrowthHoweverManyThereAre) {
  // Each request is larger than all before it, whose blocks lie free: 12 MiB, 14 MiB, …
  constexpr uint64_t kCount = 10'000;
  AllocatorTrace trace;
  Simulator simulator(AllocatorConfig{}, newest_release());
  std::vector<uint64_t> addresses;
  for (uint64_t i = 0; i < kCount; ++i) {
    const uint64_t bytes = (12 + 2 * i) * kMiB, address = (i + 1) << 40;
    trace.events.append(
        {.address = address, .size_bytes = bytes, .stack = 7, .action = Action::kAlloc});
    trace.events.append(
        {.address = address, .size_bytes = bytes, .stack = 7, .action = Action::kFreeCompleted});
  }
  CacheGrowth growth(trace);
  growth.begin(simulator.statistics());
  for (uint64_t i = 0; i < kCount; ++i) {
    const BlockId block = simulator.malloc({.requested_bytes = (12 + 2 * i) * kMiB});
    growth.see(2 * i, simulator);
    simulator.free_completed(block);
    growth.see(2 * i + 1, simulator);
  }
  const uint64_t reserved = simulator.statistics().reserved.peak;
  EXPECT_EQ(reserved, (12 * kCount + kCount * (kCount - 1)) * kMiB);
  const auto found = growth.variable_shapes(reserved);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->forced_events, kCount / 2) << "those of the trace's second half";
  EXPECT_EQ(found->forced_bytes,
            (6 * kCount + kCount * (kCount - 1) - kCount / 2 * (kCount / 2 - 1)) * kMiB);
  EXPECT_EQ(found->distinct_sizes, kCount);
  EXPECT_EQ(found->stack, 7u);
}

}  // namespace
}  // namespace gpumemprof

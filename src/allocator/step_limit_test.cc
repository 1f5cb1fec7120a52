#include "allocator/step_limit.h"

#include <gtest/gtest.h>

#include "allocator/replay.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

/// Live blocks with unmapped holes between them, and requests that fit into none of the holes.
WhatIfResult with_requests(uint64_t requests) {
  constexpr uint64_t kBlocks = 4000;
  AllocatorTrace trace;
  uint64_t place = 0;
  const auto add = [&](Action action, uint64_t number, uint64_t bytes) {
    trace.events.append({.address = number << 32, .size_bytes = bytes, .action = action});
  };
  for (; place < kBlocks; ++place) add(Action::kAlloc, place, 20 * kMiB);
  for (uint64_t i = 0; i < kBlocks; i += 2) add(Action::kFreeCompleted, i, 20 * kMiB);
  add(Action::kSegmentUnmap, 0, 20 * kMiB);  // the cache is emptied
  for (uint64_t i = 0; i < requests; ++i) add(Action::kAlloc, place++, 40 * kMiB);
  AllocatorConfig config;
  config.expandable_segments = true;
  return what_if(trace, config, newest_release());
}

TEST(StepLimit, ASimulationThatCostsMoreThanItsTraceIsLongIsGivenUp) {
  EXPECT_FALSE(with_requests(1000).gave_up_at.has_value());
  const WhatIfResult result = with_requests(4000);  // each looks at all 2,000 holes
  ASSERT_TRUE(result.gave_up_at.has_value());
  EXPECT_GT(*result.gave_up_at, 6001 + step_limit(0) / 4100) << "not before the limit";
}

}  // namespace
}  // namespace gpumemprof

#include "estimate/simulate.h"

#include <gtest/gtest.h>

#include <random>

#include "allocator/replay.h"
#include "base/size.h"
#include "estimate/configuration_answer.h"
#include "estimate/trace_for_tests.h"
#include "estimate/trace_prediction.h"

namespace gpumemprof {
namespace {

StepPeaks peaks_of(const StepTrace& trace, const AllocatorConfig& config = {}) {
  return simulate_steps(trace, config, newest_release(), library_table());
}

TEST(SimulateSteps, LiveAllocatedAndReservedByHand) {
  // 100 and 600 bytes become blocks of 512 and 1024 in a segment of 2 MiB, 3 MiB one in 20 MiB.
  const StepPeaks peaks =
      peaks_of(trace_of("a 0 100 0 - 0\na 1 600 0 - 0\na 2 3145728 0 - 0\nf 1\na 3 10 0 - 0\n"));
  EXPECT_EQ(peaks.live_bytes, 100u + 600 + 3145728);
  EXPECT_EQ(peaks.live_event, 2u);
  EXPECT_EQ(peaks.allocated_bytes, 512u + 1024 + 3145728);
  EXPECT_EQ(peaks.reserved_bytes, 22 * kMiB);
  EXPECT_EQ(peaks.workspace_bytes, 0u);
}

TEST(SimulateSteps, AConvolutionAsksForItsWorkspaceAndTrialsEmptyTheCache) {
  // A dense weight gradient: twice input and output. 30 MiB are free when the cache is emptied.
  const std::string lines = "a 0 31457280 0 - 0\nf 0\nc w 0 8388608 8388608 36864 9 1 1 64 64 0\n";
  const StepPeaks tried = peaks_of(trace_of(lines, 2, true));
  EXPECT_EQ(tried.workspace_bytes, 32 * kMiB);
  EXPECT_EQ(tried.allocated_bytes, 32 * kMiB);
  EXPECT_EQ(tried.reserved_bytes, 62 * kMiB);
  // With trials each shape empties the cache once: the second time it serves the request itself.
  const std::string again = lines +
                            "c w 0 8388608 8388608 36864 9 1 1 64 64 0\nc w 0 8388608 8388608 "
                            "36864 9 1 1 64 64 0\na 1 10485760 0 - 0\n";
  EXPECT_EQ(peaks_of(trace_of(again, 2, true)).reserved_bytes, 62 * kMiB);
  EXPECT_EQ(
      peaks_of(trace_of("c f 0 8388608 8388608 36864 9 1 64 64 64 0\n", 2, true)).reserved_bytes,
      0u)
      << "depthwise";
}

TEST(SimulateSteps, EachThreadsFirstProductMakesAHandle) {
  const uint64_t one = library_table().product_workspace_bytes;
  EXPECT_EQ(peaks_of(trace_of("p forward\nm\nm\n")).allocated_bytes, (one + 511) / 512 * 512);
  EXPECT_EQ(peaks_of(trace_of("p forward\nm\np backward\nm\nm\n")).allocated_bytes,
            2 * ((one + 511) / 512 * 512));
}

TEST(SimulateSteps, OutOfMemoryEndsItThere) {
  AllocatorConfig config;
  config.capacity_bytes = 30 * kMiB;
  const StepPeaks peaks =
      peaks_of(trace_of("a 0 20971520 0 - 0\na 1 20971520 0 - 0\nf 0\n"), config);
  EXPECT_EQ(peaks.first_oom_event, 1u);
  EXPECT_EQ(peaks.reserved_bytes, 20 * kMiB);
  const StepPeaks beyond = peaks_of(trace_of("a 0 1125899906842623 0 - 0\nf 0\n"));
  EXPECT_FALSE(beyond.is_beyond_measure);
}

/// A heap's random history, for two readers.
struct RandomHistory {
  std::string lines;
  AllocatorTrace trace;

  explicit RandomHistory(uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<std::pair<uint32_t, uint64_t>> live;
    uint64_t address = 0x7f0000000000;
    uint32_t made = 0;
    for (int i = 0; i < 2000; ++i) {
      if (live.empty() || random() % 5 < 3) {
        const uint64_t bytes = 1 + random() % (random() % 3 == 0 ? 40'000'000 : 400'000);
        lines += "a " + std::to_string(made) + ' ' + std::to_string(bytes) + " 0 - 0\n";
        trace.events.append({.address = address, .size_bytes = bytes, .action = Action::kAlloc});
        live.emplace_back(made++, address);
        address += 1ull << 30;
      } else {
        const size_t at = random() % live.size();
        lines += "f " + std::to_string(live[at].first) + '\n';
        trace.events.append({.address = live[at].second, .action = Action::kFreeCompleted});
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
  }
};

TEST(SimulateSteps, IsWhatTheReplayOfARecordingSays) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    const RandomHistory history(seed);
    for (const char* text : {"", "expandable_segments:True", "max_split_size_mb:64"}) {
      const auto config = parse_settings(text, newest_release());
      ASSERT_TRUE(config);
      const WhatIfResult replayed = what_if(history.trace, *config, newest_release());
      const StepPeaks simulated = peaks_of(trace_of(history.lines), *config);
      EXPECT_EQ(simulated.reserved_bytes, replayed.peak_reserved_bytes) << seed << text;
      EXPECT_EQ(simulated.allocated_bytes, replayed.peak_allocated_bytes) << seed << text;
    }
  }
}

}  // namespace
}  // namespace gpumemprof

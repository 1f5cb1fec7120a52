#include "analysis/series/recording_levels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "analysis/series/recording_patterns.h"
#include "base/size.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

TEST(RecordingLevels, FewRisesOrLessThanASecondWithoutStepsAreNoGrowth) {
  constexpr uint64_t kMs = 1'000'000;
  // `count` blocks that stay, one every `gap_ms` from half of it on, between a first and last event.
  const auto analysis_of = [](uint64_t count, uint64_t gap_ms) {
    EventBatch events;
    append(&events, {.time_ns = 0, .address = 1, .size_bytes = 1024});
    for (uint64_t i = 0; i < count; ++i) {
      append(&events, {.time_ns = (2 * i + 1) * gap_ms * kMs / 2, .address = 2 + i,
                       .size_bytes = 100 * kMiB});
    }
    append(&events, {.time_ns = count * gap_ms * kMs, .address = 2 + count, .size_bytes = 1024});
    MemorySource source(events);
    Tables& tables = source.mutable_tables();
    tables.processes.emplace_back();
    tables.threads.push_back({0, 11, "t"});
    tables.devices.push_back(Device{.size_is_requested = true});
    Analysis analysis = *analyze_source(source, {});
    add_patterns(source.tables(), std::nullopt, &analysis);
    return analysis;
  };
  const auto grows = [](const Analysis& analysis) {
    return std::ranges::find(analysis.findings, FindingKind::kSteadyGrowth, &Finding::kind) !=
           analysis.findings.end();
  };
  const auto growth_part = [](const Analysis& analysis) {
    return *std::ranges::find(analysis.score.parts, "growth", &ScorePart::name);
  };
  EXPECT_TRUE(grows(analysis_of(100, 20))) << "100 in 2 s";
  for (const Analysis& analysis : {analysis_of(4, 500), analysis_of(100, 8)}) {
    EXPECT_FALSE(grows(analysis));
    EXPECT_FALSE(growth_part(analysis).value);
    EXPECT_EQ(growth_part(analysis).reason, "memory rose too few times, or for less than a second");
  }
}

}  // namespace
}  // namespace gpumemprof

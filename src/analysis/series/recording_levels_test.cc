#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/series/recording_patterns.h"
#include "base/size.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

Analysis analysis_of(const EventBatch& events) {
  MemorySource source(events);
  Tables& tables = source.mutable_tables();
  tables.processes.emplace_back();
  tables.threads.push_back({0, 11, "t"});
  tables.devices.push_back(Device{.size_is_requested = true});
  Analysis analysis = *analyze_source(source, {});
  add_patterns(source.tables(), std::nullopt, &analysis);
  return analysis;
}

ScorePart part_of(const Analysis& analysis, std::string_view name) {
  return *std::ranges::find(analysis.score.parts, name, &ScorePart::name);
}

TEST(RecordingLevels, FewRisesOrLessThanASecondWithoutStepsAreNoGrowth) {
  constexpr uint64_t kMs = 1'000'000;
  // `count` blocks that stay, one every `gap_ms` from half of it on, between a first and last event.
  const auto with_blocks = [](uint64_t count, uint64_t gap_ms) {
    EventBatch events;
    append(&events, {.time_ns = 0, .address = 1, .size_bytes = 1024});
    for (uint64_t i = 0; i < count; ++i) {
      append(&events, {.time_ns = (2 * i + 1) * gap_ms * kMs / 2, .address = 2 + i,
                       .size_bytes = 100 * kMiB});
    }
    append(&events, {.time_ns = count * gap_ms * kMs, .address = 2 + count, .size_bytes = 1024});
    return analysis_of(events);
  };
  const auto grows = [](const Analysis& analysis) {
    return std::ranges::find(analysis.findings, FindingKind::kSteadyGrowth, &Finding::kind) !=
           analysis.findings.end();
  };
  EXPECT_TRUE(grows(with_blocks(100, 20))) << "100 in 2 s";
  for (const Analysis& analysis : {with_blocks(4, 500), with_blocks(100, 8)}) {
    EXPECT_FALSE(grows(analysis));
    EXPECT_FALSE(part_of(analysis, "growth").value);
    EXPECT_EQ(part_of(analysis, "growth").reason,
              "memory rose too few times, or for less than a second");
  }
}

/// A floor of 1 MiB, and of `rises` more from each of these levels of 100 on.
RecordingLevels levels_that_rise(const std::vector<size_t>& rises, uint64_t mib) {
  RecordingLevels out;
  for (size_t i = 0; i < 100; ++i) {
    out.times_s.push_back(static_cast<double>(i));
    const auto risen = std::ranges::count_if(rises, [&](size_t at) { return at <= i; });
    out.floor.push_back(static_cast<double>(kMiB * (1 + static_cast<uint64_t>(risen) * mib)));
  }
  return out;
}

TEST(RecordingLevels, AFewRisesToTheEndTellNothing) {
  RecordingLevels levels = levels_that_rise({40, 50, 60, 70, 80, 90}, 16);
  EXPECT_TRUE(rises_to_the_end(levels));
  levels.are_steps = true;
  EXPECT_FALSE(rises_to_the_end(levels)) << "that is decided by the steps";
  EXPECT_FALSE(rises_to_the_end(levels_that_rise({10, 20, 30, 40, 50, 60}, 16))) << "it has ended";
  EXPECT_FALSE(rises_to_the_end(levels_that_rise({80}, 16))) << "one step that stays";
  std::vector<size_t> often(12);
  for (size_t i = 0; i < often.size(); ++i) often[i] = 8 * (i + 1);
  EXPECT_FALSE(rises_to_the_end(levels_that_rise(often, 16)));
}

TEST(RecordingLevels, WhatAProgramFreesAsItEndsWasNotReleased) {
  // Six rounds that keep 16 MiB each, a temporary of 100 MiB in each; then all of it goes.
  constexpr uint64_t kTenth = 100'000'000;
  EventBatch events;
  append(&events, {.time_ns = 0, .address = 1, .size_bytes = kMiB});
  for (uint64_t i = 0; i < 6; ++i) {
    const uint64_t time_ns = (10 + 2 * i) * kTenth;
    append(&events, {.time_ns = time_ns, .address = 2, .size_bytes = 100 * kMiB});
    append(&events, {.time_ns = time_ns, .address = 3 + i, .size_bytes = 16 * kMiB});
    append(&events, {.time_ns = time_ns + kTenth, .action = Action::kFreeCompleted, .address = 2});
  }
  for (uint64_t i = 0; i < 6; ++i) {
    append(&events, {.time_ns = 23 * kTenth, .action = Action::kFreeCompleted, .address = 3 + i});
  }
  const Analysis analysis = analysis_of(events);
  EXPECT_NE(part_of(analysis, "growth").reason, "the minimum does not grow");
  EXPECT_NE(part_of(analysis, "cleanup").reason, "the rise was released");
}

}  // namespace
}  // namespace gpumemprof

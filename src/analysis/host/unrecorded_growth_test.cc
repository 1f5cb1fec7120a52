#include "analysis/host/host_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kSampleNs = 1'000'000'000;

/// A sample a second, `mib(second)` of anonymous memory.
template <class Mib>
HostRun sampled(uint64_t seconds, Mib mib) {
  HostRun run;
  for (uint64_t i = 0; i < seconds; ++i)
    run.levels.push_back({.time_ns = (i + 1) * kSampleNs, .anonymous = mib(i) * kMiB});
  return run;
}

uint64_t rising(uint64_t second) { return 1024 + 50 * second; }

TEST(UnrecordedGrowth, IsWhatAnonymousMemoryGrewBy) {
  const auto found = unrecorded_growth(sampled(30, rising), {}, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, 19 * 50 * kMiB) << "from the eleventh sample on";
  EXPECT_EQ(found->severity, Severity::kInfo);
  EXPECT_EQ(found->title,
            "anonymous memory of the host grew by 950 MiB that no recorded allocator has");
}

TEST(UnrecordedGrowth, OfWhichMallocKeepsHalfIsNotLookedForInBlocks) {
  HostRun run = sampled(30, rising);
  HostMoment look;
  look.malloc_kept.bytes = 474 * kMiB;
  run.processes.push_back({.asked = {look}});
  EXPECT_THAT(unrecorded_growth(run, {}, {})->fix, testing::HasSubstr("run --host"));
  run.processes[0].asked[0].malloc_kept.bytes = 475 * kMiB;  // of 950
  EXPECT_THAT(unrecorded_growth(run, {}, {})->fix, testing::HasSubstr("MALLOC_MMAP_THRESHOLD_"));
  EXPECT_TRUE(unrecorded_growth(run, {}, {})
                  ->title.ends_with("malloc kept 475 MiB of free memory when it was asked last"));
}

TEST(UnrecordedGrowth, IsToldFromLessOnWhereItIsMostOfWhatIsThere) {
  // Between samples 11 and 30 it grows by 19 times as much a second.
  const auto found = unrecorded_growth(sampled(30, [](uint64_t i) { return 4 * i; }), {}, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, 19 * 4 * kMiB) << "of 116 MiB";
  EXPECT_FALSE(unrecorded_growth(sampled(30, [](uint64_t i) { return 100 + 4 * i; }), {}, {}))
      << "76 of 216 MiB";
  EXPECT_FALSE(unrecorded_growth(sampled(30, [](uint64_t i) { return 3 * i; }), {}, {}))
      << "57 MiB are less than 64";
}

TEST(UnrecordedGrowth, IsSeenThoughTheProgramGivesItBackAsItEnds) {
  const auto found =
      unrecorded_growth(sampled(31, [](uint64_t i) { return i == 30 ? 100 : rising(i); }), {}, {});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, 19 * 50 * kMiB);
}

TEST(UnrecordedGrowth, IsNotTheStartOfAProgramNorLittle) {
  EXPECT_FALSE(unrecorded_growth(sampled(17, rising), {}, {}))
      << "12 samples in 11 s, without the start";
  EXPECT_FALSE(unrecorded_growth(sampled(30, [](uint64_t i) { return 9000 + 10 * i; }), {}, {}))
      << "a thirtieth of what is there";
  EXPECT_FALSE(unrecorded_growth(
      sampled(30, [](uint64_t i) { return rising(std::min<uint64_t>(i, 16)); }), {}, {}))
      << "it fills and stops";
  EXPECT_FALSE(unrecorded_growth({}, {}, {}));
}

TEST(UnrecordedGrowth, IsLessWhatTheAllocatorsOfTheHostHave) {
  Tables tables;
  tables.devices.push_back({});  // PyTorch's on the CPU
  Analysis analysis;
  analysis.devices.emplace_back();
  Timeline timeline(kSampleNs, 64, 0);
  for (uint64_t i = 0; i < 30; ++i) timeline.add((i + 1) * kSampleNs, 50 * i * kMiB);
  timeline.finish(30 * kSampleNs);
  analysis.devices[0].timeline = timeline;
  EXPECT_FALSE(unrecorded_growth(sampled(30, rising), analysis, tables));
}

TEST(UnrecordedGrowth, IsNotToldWhereMallocsBlocksAreRecorded) {
  Tables tables;
  tables.devices.push_back({.type = kHostBlocks});
  Analysis analysis;
  analysis.devices.emplace_back();
  EXPECT_FALSE(unrecorded_growth(sampled(30, rising), analysis, tables));
}

}  // namespace
}  // namespace gpumemprof

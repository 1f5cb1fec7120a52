#include "analysis/replay/snapshot_troubles.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/replay/snapshot_findings.h"
#include "analysis/replay/snapshot_for_tests.h"

namespace gpumemprof {
namespace {

using Paper = PaperSnapshot;

/// Each round: two segments of 20 MiB are allocated, used, and freed one after the other by
/// `function`. 10 events a round, a microsecond apart.
PaperSnapshot segments_emptied_by(int rounds, const char* function) {
  Paper paper;
  Tables& tables = paper.snapshot.tables;
  uint32_t freed_by = 0;
  if (function) {
    const uint32_t name = tables.strings.intern(function);
    freed_by = tables.stacks.push(
        paper.site(9),
        tables.stacks.intern_frame({tables.strings.intern("/t/memory.py"), name, 192}));
  }
  for (int round = 0; round < rounds; ++round) {
    for (const uint64_t address : {Paper::kFirst, Paper::kSecond}) {
      paper.add(Action::kSegmentAlloc, address, 20 * kMiB, 1);
      paper.add(Action::kAlloc, address, 20 * kMiB, 1);
      paper.free(address, 20 * kMiB, 1);
    }
    for (const uint64_t address : {Paper::kFirst, Paper::kSecond}) {
      AllocatorEvents& events = paper.snapshot.traces[0].events;
      events.append({.address = address,
                     .size_bytes = 20 * kMiB,
                     .time_us = 1000 + static_cast<int64_t>(events.size()),
                     .stack = freed_by,
                     .action = Action::kSegmentFree});
    }
  }
  return paper;
}

std::optional<Finding> churn(int rounds, const char* function, uint64_t peak_mib = 40) {
  const PaperSnapshot paper = segments_emptied_by(rounds, function);
  SnapshotDevice device;
  device.replay.peak_reserved.bytes = peak_mib * kMiB;
  return find_segment_churn(paper.snapshot.traces[0], paper.snapshot.tables, device);
}

TEST(SegmentChurn, OfEmptyCacheIsToldWithItsCallsAndSegments) {
  for (const char* function : {"empty_cache", "c10::cuda::NativeCachingAllocator::emptyCache()"}) {
    const auto found = churn(5, function);
    ASSERT_TRUE(found) << function;
    EXPECT_EQ(found->title,
              "torch.cuda.empty_cache() gave memory back 5 times: 10 segments (200 MiB) were freed "
              "and 10 allocated in 49 µs; each cudaFree waits for the GPU, and each segment is a "
              "cudaMalloc again");
    EXPECT_EQ(found->name, "segment_churn");
    EXPECT_EQ(found->bytes, std::nullopt);
    EXPECT_NE(found->stack, 0u);
  }
}

TEST(SegmentChurn, WithoutStacksNothingIsSaidOfWhoFreedThem) {
  const auto found = churn(5, nullptr);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->title.starts_with("10 segments (200 MiB) were freed and 10 allocated in "));
  EXPECT_TRUE(found->title.ends_with("; no stack says what freed them"));
  const auto by_itself = churn(5, "garbage_collect_cached_blocks");
  ASSERT_TRUE(by_itself);
  EXPECT_TRUE(by_itself->title.ends_with("is a cudaMalloc again"));
  EXPECT_EQ(by_itself->fix, "");
}

TEST(SegmentChurn, IsThreeTimesTheReservedPeak) {
  EXPECT_TRUE(churn(3, "empty_cache")) << "120 of 40 MiB";
  EXPECT_FALSE(churn(2, "empty_cache"));
  EXPECT_FALSE(churn(3, "empty_cache", 41));
}

TEST(SegmentChurn, TakesThePlaceOfTheAdviceToCallEmptyCache) {
  SnapshotDevice device{.is_replayed = true, .is_consistent = true};
  device.at_peak.emplace();
  device.at_peak->figures = {.reserved_bytes = 100 * kMiB, .releasable_bytes = 50 * kMiB};
  const auto slack = [&] {
    std::vector<Finding> findings;
    add_snapshot_findings(device, 0, &findings);
    return std::ranges::count(findings, FindingKind::kCacheSlack, &Finding::kind);
  };
  EXPECT_EQ(slack(), 1) << "the advice";
  device.troubles.push_back(*churn(5, "empty_cache"));
  EXPECT_EQ(slack(), 1) << "the churn alone";
}

}  // namespace
}  // namespace gpumemprof

#include "analysis/analysis.h"

#include <gtest/gtest.h>

#include <map>

#include "trace/memory_source.h"
#include "trace/naive_state_for_tests.h"

namespace gpumemprof {
namespace {

MemorySource source_of(const std::vector<EventRow>& rows, size_t batch_size = 4096) {
  EventBatch batch;
  for (const EventRow& row : rows) append(&batch, row);
  MemorySource source(std::move(batch), batch_size);
  Tables& tables = source.mutable_tables();
  tables.processes.resize(2);
  tables.devices.resize(4);
  tables.devices[2].process = 1;
  tables.threads.resize(3);
  return source;
}

TEST(Analysis, FollowsSeveralDevicesAndProcessesAtOnce) {
  MemorySource source = source_of({{100, Action::kAlloc, 0x1, 1000, 1, 0, 0},
                                   {200, Action::kAlloc, 0x1, 4000, 2, 1, 2},
                                   {300, Action::kFreeCompleted, 0x1, 0, 0, 0, 0},
                                   {400, Action::kAlloc, 0x2, 10, 1, 2, 0}});
  Result<Analysis> analysis = analyze_source(source, {});
  ASSERT_TRUE(analysis);
  ASSERT_EQ(analysis->devices.size(), 2u) << "devices without an event are left out";
  EXPECT_EQ(analysis->devices[0].figures.peak_bytes, 1000u);
  EXPECT_EQ(analysis->devices[1].device, 2u);
  EXPECT_EQ(analysis->devices[1].figures.peak_bytes, 4000u);
  EXPECT_EQ(analysis->devices[1].figures.peak_event, 1u);
  EXPECT_EQ(analysis->events, 4u);
  EXPECT_EQ(analysis->processes[0].alloc_bytes, 1010u);
  EXPECT_EQ(analysis->processes[0].events, 3u);
  EXPECT_EQ(analysis->processes[1].alloc_bytes, 4000u);
  EXPECT_EQ(analysis->threads[1].alloc_bytes, 4000u);
  EXPECT_EQ(analysis->threads[2].alloc_count, 1u);
  EXPECT_EQ(analysis->start_time_ns, 100u);
}

TEST(Analysis, TemporariesAreBlocksThatLiveNoLongerThanTheLimit) {
  MemorySource source = source_of({{0, Action::kAlloc, 0x1, 10, 5},
                                   {1'000'000, Action::kFreeCompleted, 0x1},
                                   {2'000'000, Action::kAlloc, 0x1, 20, 5},
                                   {3'000'001, Action::kFreeCompleted, 0x1},
                                   {3'000'002, Action::kAlloc, 0x1, 40, 6},
                                   {3'000'002, Action::kFreeCompleted, 0x1}});
  Result<Analysis> analysis = analyze_source(source, {});
  ASSERT_TRUE(analysis);
  const DeviceAnalysis& device = analysis->devices[0];
  EXPECT_EQ(device.temporary_count, 2u);
  EXPECT_EQ(device.temporary_bytes, 50u);
  ASSERT_EQ(device.temporaries.size(), 2u);
  EXPECT_EQ(device.temporaries[0].stack, 5u);
  EXPECT_EQ(device.temporaries[0].bytes, 10u);
  EXPECT_EQ(device.lifetimes[0].count, 1u);
  EXPECT_EQ(device.lifetimes[20].count, 2u) << "2^19 <= 1,000,000 and 1,000,001 < 2^20";
}

TEST(Analysis, ADroppedBeginningStillCountsTowardsThePeak) {
  const std::vector<EventRow> rows = {{100, Action::kAlloc, 0x1, 600, 1},
                                      {200, Action::kAlloc, 0x2, 300, 2},
                                      {300, Action::kFreeCompleted, 0x2},
                                      {400, Action::kAlloc, 0x3, 50, 3}};
  LiveState before;
  EventBatch dropped, kept;
  for (size_t i = 0; i < 3; ++i) append(&dropped, rows[i]);
  append(&kept, rows[3]);
  kept.first_event = 3;
  before.apply(dropped);
  MemorySource source(kept);
  source.mutable_tables().devices.resize(1);
  source.mutable_tables().processes.resize(1);
  source.set_state_before(std::move(before));
  Result<Analysis> analysis = analyze_source(source, {});
  ASSERT_TRUE(analysis);
  EXPECT_TRUE(analysis->oldest_dropped);
  EXPECT_EQ(analysis->events, 4u);
  EXPECT_EQ(analysis->events_read, 1u);
  const DeviceAnalysis& device = analysis->devices[0];
  EXPECT_EQ(device.figures.peak_bytes, 900u);
  EXPECT_EQ(device.figures.peak_event, 1u);
  ASSERT_EQ(device.holders_at_peak.size(), 2u);
  EXPECT_EQ(device.holders_at_peak[1].bytes, 300u);
  EXPECT_EQ(device.timeline.buckets().front().max_bytes, 650u);
  EXPECT_EQ(device.timeline.buckets().front().min_bytes, 600u);
}

TEST(Analysis, AgreesWithASecondImplementationOnRandomEvents) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const std::vector<EventRow> rows = random_rows(seed);
    NaiveState naive;
    for (size_t i = 0; i < rows.size(); ++i) naive.apply(rows[i], i);
    MemorySource source = source_of(rows, 1 + seed % 33);
    Result<Analysis> analysis = analyze_source(source, {.timeline_buckets = 8});
    ASSERT_TRUE(analysis);
    ASSERT_EQ(analysis->devices.size(), naive.devices.size());
    for (const DeviceAnalysis& device : analysis->devices) {
      const NaiveState::Device& truth = naive.devices.at(device.device);
      ASSERT_EQ(device.figures.peak_bytes, truth.peak_bytes) << seed;
      uint64_t at_peak = 0, at_end = 0, highest = 0;
      for (const Holder& holder : device.holders_at_peak) at_peak += holder.bytes;
      for (const Holder& holder : device.holders_at_end) at_end += holder.bytes;
      for (const TimelineBucket& b : device.timeline.buckets())
        highest = std::max(highest, b.max_bytes);
      ASSERT_EQ(at_peak, truth.peak_bytes) << seed;
      ASSERT_EQ(at_end, truth.live_bytes()) << seed;
      ASSERT_EQ(highest, truth.peak_bytes) << seed;
      ASSERT_EQ(device.timeline.buckets().back().last_bytes, truth.live_bytes()) << seed;
    }
  }
}

TEST(Analysis, NoEventsIsAnAnswerToo) {
  MemorySource source = source_of({});
  Result<Analysis> analysis = analyze_source(source, {});
  ASSERT_TRUE(analysis);
  EXPECT_TRUE(analysis->devices.empty());
  EXPECT_EQ(main_device(*analysis, source.tables()), nullptr);
}

TEST(Analysis, AnAcceleratorIsTheAnswerEvenWhereTheHostHoldsMore) {
  MemorySource source = source_of({{1, Action::kAlloc, 0x1, 5000, 1, 0, 0},
                                   {2, Action::kAlloc, 0x1, 40, 1, 0, 1},
                                   {3, Action::kAlloc, 0x1, 70, 1, 0, 3}});
  source.mutable_tables().devices[1].type = 1;
  source.mutable_tables().devices[3].type = 1;
  Result<Analysis> analysis = analyze_source(source, {});
  ASSERT_TRUE(analysis);
  EXPECT_EQ(main_device(*analysis, source.tables())->device, 3u);
}

TEST(Analysis, ProgressReachesTheEnd) {
  MemorySource source = source_of(random_rows(3), 5);
  double last = 0;
  AnalysisOptions options;
  options.on_progress = [&](double done) {
    EXPECT_GE(done, last);
    last = done;
  };
  ASSERT_TRUE(analyze_source(source, options));
  EXPECT_EQ(last, 1.0);
}

}  // namespace
}  // namespace gpumemprof

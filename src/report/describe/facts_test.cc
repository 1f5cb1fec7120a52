#include "report/describe/facts.h"

#include <gtest/gtest.h>

#include "analysis/host/host_memories.h"
#include "analysis/replay/snapshot_device.h"
#include "report/describe/snapshot_words.h"

namespace gpumemprof {
namespace {

TEST(PeakSentence, OfMapsSaysThatTheyAreMappedAndWhatIsResident) {
  Tables tables;
  tables.processes = {{.pid = 7, .host = "one"}};
  tables.devices = {{.type = kHostBlocks, .index = 1, .layer = Layer::kHost, .name = "anonymous maps"},
                    {.type = kHostBlocks, .index = 0, .layer = Layer::kHost, .name = "malloc"}};
  Analysis analysis;
  analysis.source.can.times = true;
  DeviceAnalysis maps{.device = 0}, blocks{.device = 1};
  for (DeviceAnalysis* device : {&maps, &blocks}) {
    device->figures.peak_bytes = 3 << 20, device->figures.peak_time_ns = 3'000'000'000;
    device->figures.actions[static_cast<size_t>(Action::kAlloc)] = 1;
    device->figures.actions[static_cast<size_t>(Action::kFreeCompleted)] = 1;
  }
  EXPECT_EQ(peak_sentence(analysis, tables, blocks), "Peak 3.00 MiB on host malloc, 3.000 s after the first event");
  EXPECT_EQ(peak_sentence(analysis, tables, maps),
            "Peak 3.00 MiB mapped on host anonymous maps, 3.000 s after the first event (how much of it is "
            "resident is unknown)");
  maps.timeline = Timeline(0, 8, 0);
  maps.timeline.add_alloc(3'000'000'000, 3 << 20, 3 << 20);
  blocks.timeline = maps.timeline;
  maps.timeline.finish(5'000'000'000);
  HostRun run;
  run.host = "one";
  run.levels = {{.time_ns = 1}, {.time_ns = 2'000'000'000}, {.time_ns = 4'000'000'000}};
  run.processes.resize(2);
  run.processes[0].pid = 8;
  run.processes[0].levels = {{1, 9 << 20}};
  run.processes[1].pid = 7;
  run.processes[1].levels = {{1, 1 << 20}, {2'000'000'000, 2 << 20}, {4'000'000'000, 5 << 20}};
  run.processes[1].last_time_ns = 4'000'000'000;
  analysis.host = std::make_shared<HostMemories>(HostMemories{.runs = {run}, .left_out = {}});
  EXPECT_EQ(peak_sentence(analysis, tables, maps),
            "Peak 3.00 MiB mapped on host anonymous maps, 3.000 s after the first event (5.00 MiB resident "
            "in the whole process, 1.000 s after the peak)")
      << "at 2 s nothing was mapped yet";
  maps.timeline = blocks.timeline;
  maps.timeline.add(3'500'000'000, 0);
  maps.timeline.finish(5'000'000'000);
  EXPECT_EQ(peak_sentence(analysis, tables, maps),
            "Peak 3.00 MiB mapped on host anonymous maps, 3.000 s after the first event (how much of it is "
            "resident is unknown: no sample between 2.000 s after the first event and 4.000 s after the "
            "first event)");
  run.levels.resize(2), run.processes[1].last_time_ns = 2'000'000'000;
  analysis.host = std::make_shared<HostMemories>(HostMemories{.runs = {run}, .left_out = {}});
  EXPECT_EQ(peak_sentence(analysis, tables, maps),
            "Peak 3.00 MiB mapped on host anonymous maps, 3.000 s after the first event (how much of it is "
            "resident is unknown: the last sample was 2.000 s after the first event)");
}

TEST(RatePerSecond, IsUnknownWhereTheEventsHaveNoTimes) {
  const Analysis analysis;
  SnapshotDevice history;
  history.has_history = true;
  DeviceAnalysis device{.first_time_ns = 1, .last_time_ns = 2'000'000'001};
  device.figures.actions[static_cast<size_t>(Action::kAlloc)] = 10;
  device.snapshot = std::make_shared<SnapshotDevice>(history);
  EXPECT_FALSE(rate_per_second(10, analysis, device));
  EXPECT_EQ(why_no_times(analysis, device), "the events have no times");
  history.has_times = true;
  device.snapshot = std::make_shared<SnapshotDevice>(history);
  EXPECT_EQ(rate_per_second(10, analysis, device), 5);
  EXPECT_EQ(why_no_times(analysis, device), "");
}

TEST(PeakSentence, OfAnAllocatorsHistorySaysThatItsBytesAreThoseRequested) {
  Tables tables;
  tables.devices = {{.type = 1, .index = 1, .size_is_requested = true}};
  Analysis analysis;
  SnapshotDevice history;
  history.has_history = history.has_times = true;
  history.peak_event = 1;
  DeviceAnalysis device;
  device.figures.peak_bytes = 3 << 20, device.figures.peak_time_ns = 2'000'000'000;
  device.figures.actions[static_cast<size_t>(Action::kAlloc)] = 2;
  device.snapshot = std::make_shared<SnapshotDevice>(history);
  EXPECT_EQ(peak_sentence(analysis, tables, device),
            "Peak 3.00 MiB on cuda:1 (requested bytes), 2.000 s after the first event (event 2 of 2)");
  device.figures.actions[static_cast<size_t>(Action::kAlloc)] = 0;
  device.figures.actions[static_cast<size_t>(Action::kSnapshot)] = 1;
  EXPECT_EQ(peak_sentence(analysis, tables, device),
            "Live 3.00 MiB on cuda:1 (requested bytes), at the one moment that the file covers")
      << "no event changes what is live, so what it was before is unknown";
}

TEST(WhyRefused, TheFigureOfWhatWasMissingIsSaidOnce) {
  OomExplanation oom{.device_free_bytes = 16 * kMiB, .free_inside_bytes = 133 * kMiB,
                     .missing_bytes = 400 * kMiB};
  oom.obstacle.largest_usable_bytes = 12 * kMiB;
  const std::string room = "The device had 16.0 MiB left, and 133 MiB were free in its segments, "
                           "the largest usable piece 12.0 MiB";
  // The replay does not know it: all that was free is subtracted, so no less was missing.
  EXPECT_EQ(why_refused(oom), room + ": at least 400 MiB too little.");
  oom.is_reproduced = true, oom.more_bytes_needed = 520 * kMiB;
  EXPECT_EQ(why_refused(oom), room + '.');
  EXPECT_NE(what_would_have_fitted(oom), "");
}

TEST(ReservedSentence, NamesWhatIsRoundingBesideWhatIsLostToFragmentation) {
  SnapshotDevice history;
  history.is_consistent = true;
  history.replay.peak_reserved.bytes = 100 << 20;
  AllocatorMoment moment;
  moment.figures = {.allocated_bytes = 80 << 20,
                    .active_bytes = 80 << 20,
                    .requested_bytes = 77 << 20,
                    .reserved_bytes = 90 << 20,
                    .releasable_bytes = 4 << 20};
  moment.pinned_bytes = 6 << 20;
  history.at_peak = moment;
  EXPECT_EQ(reserved_sentence(history, Tables{}, false),
            "Reserved at most 100 MiB; at the peak 90.0 MiB: 80.0 MiB allocated (3.00 MiB of it "
            "rounding), 6.00 MiB lost to fragmentation, 4.00 MiB cached.");
  history.at_most_reserved = moment;
  history.at_most_reserved->pinned_bytes = 30 << 20;
  EXPECT_EQ(reserved_sentence(history, Tables{}, false),
            "Reserved at most 100 MiB, 30.0 MiB of it lost to fragmentation; at the peak 90.0 MiB: "
            "80.0 MiB allocated (3.00 MiB of it rounding), 6.00 MiB lost to fragmentation, "
            "4.00 MiB cached.");
  history.at_most_reserved.reset();
  EXPECT_EQ(reserved_sentence(history, Tables{}, true),
            "Reserved 90.0 MiB: 80.0 MiB allocated (3.00 MiB of it rounding), 6.00 MiB lost to "
            "fragmentation, 4.00 MiB cached.");
  history.at_peak->figures.requested_bytes = 80 << 20;
  EXPECT_EQ(reserved_sentence(history, Tables{}, true),
            "Reserved 90.0 MiB: 80.0 MiB allocated, 6.00 MiB lost to fragmentation, 4.00 MiB "
            "cached.");
}

TEST(ReservedSentence, WhatIsFreedAndWaitsForAStreamMakesTheSumWhole) {
  SnapshotDevice history;
  history.is_consistent = true;
  history.at_peak.emplace();
  history.at_peak->figures = {.allocated_bytes = 50 << 20,
                              .active_bytes = 1050 << 20,
                              .requested_bytes = 1050 << 20,
                              .reserved_bytes = 1070 << 20,
                              .releasable_bytes = 20 << 20};
  EXPECT_EQ(reserved_sentence(history, Tables{}, true),
            "Reserved 1.04 GiB: 50.0 MiB allocated, 1000 MiB freed, waiting for a stream, 0 B lost "
            "to fragmentation, 20.0 MiB cached.");
}

TEST(NoStackWords, NameTheLargestTypesFirstWithWhatIsUnknown) {
  Tables tables;
  tables.devices = {{.type = 1, .index = 0}};
  DeviceAnalysis device;
  device.holders_at_peak = {{0, 1030 << 10, 3}};
  device.categories.at_peak = {{.category = Category::kParameter, .bytes = 6 << 10, .count = 1},
                               {.category = Category::kUnknown, .bytes = 1024 << 10, .count = 2}};
  EXPECT_EQ(no_stack_words(device, tables), "unknown 1.00 MiB, parameter 6.00 KiB");
  SnapshotDevice history{.live_before_bytes = 1030 << 10};
  device.snapshot = std::make_shared<SnapshotDevice>(history);
  EXPECT_EQ(no_stack_words(device, tables),
            "allocated before the recording began: unknown 1.00 MiB, parameter 6.00 KiB");
  device.categories.at_peak.erase(device.categories.at_peak.begin());
  EXPECT_EQ(no_stack_words(device, tables), "allocated before the recording began");
}

}  // namespace
}  // namespace gpumemprof

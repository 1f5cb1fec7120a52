#include "analysis/ranks/job_pass.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

/// Process i is rank i, with thread i and the CPU as device i.
Tables ranks(uint32_t count) {
  Tables tables;
  for (uint32_t i = 0; i < count; ++i) {
    tables.processes.push_back({.pid = 100 + i, .rank = i});
    tables.threads.push_back({.process = i});
    tables.devices.push_back({.process = i});
  }
  return tables;
}

EventBatch begins(const std::vector<std::pair<uint32_t, uint64_t>>& entered, uint64_t number) {
  EventBatch batch;
  for (const auto& [rank, time_ns] : entered) {
    batch.marks.push_back({.kind = MarkKind::kRole,
                           .thread = rank,
                           .time_ns = time_ns,
                           .value = Mark::kCollectiveBegins | number << 8});
  }
  return batch;
}

TEST(JobPass, OneRankIsNoJob) {
  const Tables tables = ranks(1);
  EXPECT_FALSE(JobPass(tables).is_job());
}

TEST(JobPass, SumsWhatIsLiveAtOneMoment) {
  const Tables tables = ranks(3);
  JobPass pass(tables);
  pass.on_level(0, 100, 1);
  pass.on_level(1, 50, 2);
  pass.on_level(0, 20, 3);
  pass.on_level(2, 90, 4);  // 20 + 50 + 90, the most
  pass.on_level(1, 0, 5);
  pass.on_level(0, 100, 6);  // each device's own peak, but later than the others'
  const JobSums sums = pass.finish();
  EXPECT_EQ(sums.host.bytes, 190u);
  EXPECT_EQ(sums.host.time_ns, 6u);
  EXPECT_EQ(sums.host.by_device, (std::vector<uint64_t>{100, 0, 90}));
  EXPECT_EQ(sums.accelerators.bytes, 0u);
}

TEST(JobPass, KeepsWhatEachHeldAtThePeak) {
  const Tables tables = ranks(2);
  JobPass pass(tables);
  pass.on_level(0, 70, 1);
  pass.on_level(1, 30, 2);  // 100
  pass.on_level(0, 10, 3);
  pass.on_level(1, 80, 4);  // 90
  pass.on_level(0, 0, 5);
  EXPECT_EQ(pass.finish().host.by_device, (std::vector<uint64_t>{70, 30}));
}

TEST(JobPass, WhatAnEndedProcessStillHeldIsNotCountedAfterItsEnd) {
  Tables tables = ranks(2);
  tables.processes[1].end_time_ns = 3;  // after its last event: it waited for the other
  JobPass pass(tables);
  pass.on_level(0, 40, 1);
  pass.on_level(1, 50, 2);
  pass.on_level(0, 60, 3);  // 110, the most
  pass.on_level(0, 90, 4);  // 140 with what rank 1 had not freed
  EXPECT_EQ(pass.finish().host.bytes, 110u);
  EXPECT_EQ(pass.finish().host.by_device, (std::vector<uint64_t>{60, 50}));
  pass.on_level(0, 120, 5);
  EXPECT_EQ(pass.finish().host.bytes, 120u);
  EXPECT_EQ(pass.finish().host.by_device, (std::vector<uint64_t>{120, 0}));
}

/// Rank 1 is killed, nobody sees when, and is started once more.
TEST(JobPass, WhatATryHeldIsNotCountedBesideTheNextOne) {
  Tables tables = ranks(3);
  tables.processes[2].rank = 1, tables.processes[2].place.restarts = 1;
  tables.processes[2].first_time_ns = 4;
  JobPass pass(tables);
  pass.on_level(0, 40, 1);
  pass.on_level(1, 50, 2);
  pass.on_level(2, 45, 5);
  EXPECT_EQ(pass.finish().host.bytes, 90u);
  pass.on_level(2, 100, 6);
  EXPECT_EQ(pass.finish().host.by_device, (std::vector<uint64_t>{0, 0, 100}))
      << "rank 0 was of the first try, too";
}

TEST(JobPass, CountsWhoEntersLastAndHowLongTheMiddleOneWaited) {
  const Tables tables = ranks(4);
  JobPass pass(tables);
  pass.begin_batch(begins({{0, 1000}, {1, 1010}, {2, 1500}, {3, 1020}}, 1));  // after 1010: 490
  pass.begin_batch(begins({{0, 2000}, {2, 2300}}, 2));
  pass.begin_batch(begins({{1, 2000}, {3, 2100}}, 2));  // over two batches; after 2000: 300
  pass.begin_batch(begins({{0, 3000}}, 3));             // the others never came
  const JobSums sums = pass.finish();
  EXPECT_EQ(sums.collectives, 2u);
  EXPECT_EQ(sums.arrivals.size(), 1u);
  EXPECT_EQ(sums.arrivals.at(2).last, 2u);
  EXPECT_EQ(sums.arrivals.at(2).waited_for_ns, 790u);
  EXPECT_EQ(sums.arrivals.at(2).longest_ns, 490u);
  EXPECT_EQ(sums.first_ns, 1000u);
  EXPECT_EQ(sums.last_ns, 2300u);
}

TEST(JobPass, ARankWithoutAnyCollectiveTakesNothingFromTheOthers) {
  const Tables tables = ranks(3);
  JobPass pass(tables);  // the file of rank 1 is torn
  pass.begin_batch(begins({{0, 1000}, {2, 1500}}, 1));
  pass.begin_batch(begins({{0, 2000}}, 2));
  const JobSums sums = pass.finish();
  EXPECT_EQ(sums.collectives, 1u);
  EXPECT_EQ(sums.arrivals.at(2).waited_for_ns, 500u);
}

TEST(JobPass, MarksOfUnknownThreadsAreNobodys) {
  const Tables tables = ranks(2);
  JobPass pass(tables);
  pass.begin_batch(begins({{0, 1}, {1, 2}, {UINT32_MAX, 3}}, 1));
  EXPECT_EQ(pass.finish().collectives, 1u);
}

}  // namespace
}  // namespace gpumemprof

#include "analysis/pass/host_sums.h"

#include <gtest/gtest.h>

#include "analysis/analysis.h"
#include "analysis/compare/pick_device.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

/// Of one process: TensorFlow's small blocks (0), its pool (1) with regions (2), PyTorch's CPU (3);
/// of another: small blocks alone (4).
MemorySource source_of(const std::vector<EventRow>& rows, size_t batch_size) {
  EventBatch events;
  for (const EventRow& row : rows) append(&events, row);
  MemorySource source(std::move(events), batch_size);
  Tables& tables = source.mutable_tables();
  tables.processes.resize(2);
  tables.threads.resize(1);
  tables.devices.resize(5);
  for (int i : {0, 1, 2, 4}) tables.devices[i].type = kTensorflowCpu;
  tables.devices[0].name = "cpu", tables.devices[0].size_is_requested = true;
  tables.devices[1].name = "mklcpu", tables.devices[1].layer = Layer::kAllocator;
  tables.devices[2].name = "mklcpu regions", tables.devices[2].layer = Layer::kDriver;
  tables.devices[4].name = "cpu", tables.devices[4].process = 1;
  return source;
}

const std::vector<EventRow> kRows = {
    {1, Action::kAlloc, 0x10, 500, 1, 0, 0},         {2, Action::kAlloc, 0x1000, 9000, 2, 0, 2},
    {3, Action::kFreeCompleted, 0x10, 0, 0, 0, 0},   {4, Action::kAlloc, 0x1010, 800, 3, 0, 1},
    {5, Action::kAlloc, 0x20, 300, 4, 0, 0},         {6, Action::kAlloc, 0x30, 77, 5, 0, 3},
    {7, Action::kFreeCompleted, 0x1010, 0, 0, 0, 1}, {8, Action::kAlloc, 0x40, 350, 6, 0, 0},
    {9, Action::kAlloc, 0x50, 10'000, 7, 0, 4}};

TEST(HostSums, HaveAPeakOfTheirOwnAtTheMomentOfTheSum) {
  for (size_t batch_size : {1, 2, 100}) {
    MemorySource source = source_of(kRows, batch_size);
    const Analysis analysis = *analyze_source(source, {});
    ASSERT_EQ(analysis.sums.size(), 1u) << "the other process has one allocator, which says all";
    const DeviceAnalysis& sum = analysis.sums[0];
    EXPECT_EQ(sum.categories.why_not, "no operation that tells a type allocated them");
    EXPECT_EQ(sum.parts, (std::vector<uint16_t>{0, 1}));
    EXPECT_EQ(memory_name(sum, source.tables()), "tensorflow:cpu + mklcpu");
    EXPECT_EQ(sum.device, 1) << "one that rounds, as the sum then is not what was asked for";
    // 500, 0, 800, 1100, 300, 650: neither the largest of the parts (800) nor the sum of theirs.
    EXPECT_EQ(sum.figures.peak_bytes, 1100u);
    EXPECT_EQ(sum.figures.peak_event, 4u);
    EXPECT_EQ(sum.figures.live_bytes, 650u);
    EXPECT_EQ(sum.figures.actions[static_cast<size_t>(Action::kAlloc)], 4u);
    EXPECT_EQ(sum.figures.actions[static_cast<size_t>(Action::kSnapshot)], 0u);
    ASSERT_EQ(sum.holders_at_peak.size(), 2u);
    EXPECT_EQ(sum.holders_at_peak[0].stack, 3u);
    EXPECT_EQ(sum.holders_at_peak[0].bytes, 800u);
    EXPECT_EQ(sum.holders_at_peak[1].bytes, 300u);
  }
}

TEST(HostSums, KnowWhatTheirPoolsHoldBeyondWhatWasAskedFor) {
  EventBatch events;
  for (const EventRow& row : kRows) append(&events, row);
  events.requested = {{1, 1}, {3, 730}, {8, 5}};  // the regions' and another process's count not
  MemorySource names = source_of(kRows, 100);
  MemorySource source(events);
  source.mutable_tables() = names.tables();
  const Analysis analysis = *analyze_source(source, {});
  ASSERT_EQ(analysis.sums.size(), 1u);
  EXPECT_EQ(analysis.sums[0].unasked_at_peak_bytes, 70u) << "of the 1100 bytes of both";
  for (const DeviceAnalysis& device : analysis.devices) {
    if (device.device > 1) continue;
    EXPECT_EQ(device.unasked_at_peak_bytes, device.device == 1 ? 70u : 0u);
  }
}

TEST(HostSums, AreTheAnswerInPlaceOfTheirParts) {
  std::vector<EventRow> rows = kRows;
  rows.pop_back();
  MemorySource source = source_of(rows, 100);
  const Analysis analysis = *analyze_source(source, {});
  EXPECT_EQ(main_device(analysis, source.tables()), &analysis.sums[0]);
}

TEST(HostSums, CanBePickedByName) {
  MemorySource source = source_of(kRows, 100);
  const Analysis analysis = *analyze_source(source, {});
  auto picked = pick_device(analysis, source.tables(), "tensorflow:cpu + mklcpu");
  ASSERT_TRUE(picked);
  EXPECT_EQ(*picked, &analysis.sums[0]);
}

TEST(HostSums, AreNotThereWhereTheOldestEventsWereDropped) {
  MemorySource source = source_of(kRows, 100);
  LiveState before;
  EventBatch first;
  append(&first, {0, Action::kAlloc, 0x60, 5, 1, 0, 0});
  before.apply(first);
  source.set_state_before(std::move(before));
  EXPECT_TRUE(analyze_source(source, {})->sums.empty());
}

}  // namespace
}  // namespace gpumemprof

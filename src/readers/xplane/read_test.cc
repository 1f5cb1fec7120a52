#include "readers/xplane/read.h"

#include <gtest/gtest.h>

#include "readers/memory_file.h"
#include "readers/xplane/xplane_for_tests.h"
#include "trace/live_state.h"

namespace gpumemprof {
namespace {

using for_tests::small_xplane;
using for_tests::XplaneEvent;
using for_tests::XplaneWriter;

std::unique_ptr<EventSource> read(const std::string& bytes) {
  MemoryFile file(bytes);
  auto source = read_xplane(file);
  EXPECT_TRUE(source) << source.error().message;
  return source ? std::move(*source) : nullptr;
}

EventBatch events_of(EventSource& source) {
  EventBatch batch;
  EXPECT_TRUE(*source.next(&batch));
  return batch;
}

std::string reasons_of(const EventSource& source) {
  std::string text;
  for (const LossReason& reason : source.loss().reasons) text += reason.reason + '\n';
  return text;
}

TEST(Xplane, EventsOfAllThreadsComeInTheOrderOfTheirTimes) {
  auto source = read(small_xplane());
  const EventBatch batch = events_of(*source);
  EXPECT_EQ(batch.time_ns, (std::vector<uint64_t>{2500, 5600, 6600, 9500}));
  EXPECT_EQ(batch.address, (std::vector<uint64_t>{0x1000, 0x2000, 0x2000, 0x1000}));
  EXPECT_EQ(batch.size_bytes, (std::vector<uint64_t>{512, 256, 256, 512}));
  EXPECT_EQ(batch.action, (std::vector<Action>{Action::kAlloc, Action::kFreeCompleted,
                                               Action::kAlloc, Action::kFreeCompleted}));
  EXPECT_EQ(batch.thread, (std::vector<uint32_t>{0, 1, 1, 0}));
  ASSERT_EQ(batch.requested.size(), 1u);  // 256 of 256 is no other size
  EXPECT_EQ(batch.requested[0].event, 0u);
  EXPECT_EQ(batch.requested[0].bytes, 400u);
  EventBatch none;
  EXPECT_FALSE(*source->next(&none));
}

TEST(Xplane, AllocatorsAreDevicesAndOperationsAreFrames) {
  auto source = read(small_xplane());
  const EventBatch batch = events_of(*source);
  const Tables& tables = source->tables();
  ASSERT_EQ(tables.devices.size(), 2u);
  EXPECT_EQ(device_name(tables.devices[0]), "tensorflow:GPU_0_bfc");
  EXPECT_EQ(tables.devices[0].type, kTensorflowGpu);
  EXPECT_EQ(tables.devices[0].index, 0);
  EXPECT_EQ(tables.devices[1].type, kTensorflowCpu);
  EXPECT_EQ(batch.device, (std::vector<uint16_t>{0, 0, 1, 0}));
  EXPECT_EQ(stack_lines(tables, batch.stack[0]),
            (std::vector<std::string>{"<tensorflow> model/dense_1/MatMul",
                                      "<tensorflow tensor> float32[20,5]"}));
  EXPECT_TRUE(stack_lines(tables, batch.stack[3]).empty());
  EXPECT_EQ(tables.processes[0].host, "host");
  EXPECT_EQ(tables.threads[1].name, "tf_Compute");
}

TEST(Xplane, StepsAreThoseOfAllocationsWithAnOperationAndUnknownWhereTheProfileHasNone) {
  auto source = read(small_xplane());
  const EventBatch batch = events_of(*source);
  EXPECT_EQ(batch.step, (std::vector<int64_t>{-7, kNoStep, kNoStep, kNoStep}));
  XplaneWriter writer;
  XplaneEvent nobodys = {.time_ps = 3000, .address = 1, .size_bytes = 8, .total_bytes = 8};
  auto none = read(XplaneWriter::space(writer.plane({{"python", 7, {nobodys}}})));
  EXPECT_TRUE(events_of(*none).step.empty());
  nobodys.shape = "[2]", nobodys.step = 5;  // the number of no step, where no operation is told
  auto without = read(XplaneWriter::space(writer.plane({{"python", 7, {nobodys}}})));
  const EventBatch events = events_of(*without);
  EXPECT_TRUE(events.step.empty());
  EXPECT_EQ(events.stack[0], 0u);
}

TEST(Xplane, AShapeThatIsNoneIsNotKept) {
  XplaneWriter writer;
  const XplaneEvent event = {.address = 1,
                             .size_bytes = 8,
                             .operation = "Add",
                             .shape = "<script>",
                             .data_type = 1,
                             .step = 3};
  auto source = read(XplaneWriter::space(writer.plane({{"python", 7, {event}}})));
  const EventBatch events = events_of(*source);
  EXPECT_EQ(stack_lines(source->tables(), events.stack[0]),
            std::vector<std::string>{"<tensorflow> Add"});
  EXPECT_EQ(events.step, std::vector<int64_t>{3});
}

TEST(Xplane, WhatWasLiveBeforeComesFromTheFreesAndFromTheTotals) {
  auto source = read(small_xplane());
  const LiveState* before = source->state_before_first_event();
  ASSERT_NE(before, nullptr);
  // 868 after an allocation of 512: 356 before, of which 256 are freed later.
  EXPECT_EQ(before->devices()[0].live_bytes, 356u);
  EXPECT_EQ(before->devices()[0].live_count, 2u);
  LiveState state = *before;
  state.apply(events_of(*source));
  EXPECT_EQ(state.devices()[0].peak_bytes, 868u);  // what the allocator calls its peak
  EXPECT_EQ(state.devices()[0].live_bytes, 100u);
  EXPECT_EQ(state.devices()[0].unmatched_frees, 0u);
  EXPECT_EQ(state.devices()[1].live_bytes, 256u);
  EXPECT_EQ(reasons_of(*source),
            "when the profile began tensorflow:GPU_0_bfc held 356 B, allocated by unknown "
            "operations: 1 block of it freed later (256 B), the rest is counted as one block\n");
}

TEST(Xplane, TimesAreThoseOfTheWallClockWhicheverWayTheyAreWritten) {
  constexpr uint64_t kStart = 1'700'000'000'000'000'000;
  XplaneWriter writer;
  const XplaneEvent event = {.time_ps = 3000, .address = 1, .size_bytes = 8, .total_bytes = 8};
  auto absolute = read(XplaneWriter::space(
      writer.plane({{"python", static_cast<int64_t>(kStart) + 7, {event}}}), kStart));
  EXPECT_EQ(events_of(*absolute).time_ns[0], 10u);
  EXPECT_EQ(absolute->tables().processes[0].realtime_offset_ns, static_cast<int64_t>(kStart));
  auto unknown = read(XplaneWriter::space(writer.plane({{"python", 7, {event}}})));
  EXPECT_EQ(events_of(*unknown).time_ns[0], 10u);
  EXPECT_EQ(unknown->tables().processes[0].realtime_offset_ns, 0);
}

TEST(Xplane, TotalsThatContradictTheEventsAreToldAndNothingIsMadeOfThem) {
  XplaneWriter writer;
  auto source = read(XplaneWriter::space(
      writer.plane({{"python",
                     1,
                     {{.time_ps = 1000, .address = 1, .size_bytes = 256, .total_bytes = 1256},
                      {.time_ps = 2000, .address = 2, .size_bytes = 256, .total_bytes = 1768}}}})));
  EXPECT_EQ(source->state_before_first_event()->live_count(), 0u);
  EXPECT_NE(reasons_of(*source).find("total differs for 1 events"), std::string::npos);
}

TEST(Xplane, AHigherPeakOfBeforeIsTold) {
  XplaneWriter writer;
  auto source = read(XplaneWriter::space(writer.plane({{"python",
                                                        1,
                                                        {{.time_ps = 1000,
                                                          .address = 1,
                                                          .size_bytes = 256,
                                                          .total_bytes = 256,
                                                          .peak_bytes = 4096}}}})));
  EXPECT_EQ(
      reasons_of(*source),
      "tensorflow:GPU_0_bfc was higher before the profile: 4.00 KiB since the program began\n");
}

TEST(Xplane, AProfileWithoutMemoryEventsSaysWhy) {
  XplaneWriter writer;
  auto source = read(XplaneWriter::space(writer.plane({{"python", 1, {}}})));
  EventBatch batch;
  EXPECT_FALSE(*source->next(&batch));
  EXPECT_NE(reasons_of(*source).find("no memory events"), std::string::npos);
}

TEST(Xplane, EventsWithoutASizeAreCountedAsLost) {
  XplaneWriter writer;
  auto source = read(XplaneWriter::space(writer.plane(
      {{"python", 1, {{.address = 1, .size_bytes = -1}, {.address = 2, .size_bytes = 8}}}})));
  EXPECT_EQ(events_of(*source).size(), 1u);
  EXPECT_EQ(source->loss().events, 1u);
}

TEST(Xplane, IsRecognisedByItsContent) {
  EXPECT_TRUE(looks_like_xplane(small_xplane()));
  EXPECT_TRUE(looks_like_xplane(std::string_view(small_xplane()).substr(0, 40)));
  EXPECT_FALSE(looks_like_xplane(""));
  EXPECT_FALSE(looks_like_xplane("\n{\"events\": []}"));
  EXPECT_FALSE(looks_like_xplane("\n\n/home"));
  EXPECT_FALSE(looks_like_xplane("\x0a\x09GPU_0_bfc\x12\x02\x08\x01"));
  EXPECT_FALSE(looks_like_xplane("\x0a\x04\x08\x01\x10\x02"));  // the beginning of a pprof file
}

}  // namespace
}  // namespace gpumemprof

#include "allocator/process_room.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

/// 40 MiB are reserved, then 64 MiB are refused with `device_free_bytes` free on the device.
AllocatorTrace refused_trace(uint64_t device_free_bytes) {
  AllocatorTrace trace{.has_history = true, .device_bytes = 1000 * kMiB};
  trace.streams = {0}, trace.pools = {{0, 0}};
  trace.events.append(
      {.address = 1 << 30, .size_bytes = 40 * kMiB, .action = Action::kSegmentAlloc});
  trace.events.append({.address = 1 << 30, .size_bytes = 40 * kMiB, .action = Action::kAlloc});
  trace.events.append(
      {.address = device_free_bytes, .size_bytes = 64 * kMiB, .action = Action::kOom});
  trace.segments.push_back({.address = 1 << 30,
                            .size_bytes = 40 * kMiB,
                            .allocated_bytes = 40 * kMiB,
                            .active_bytes = 40 * kMiB,
                            .requested_bytes = 40 * kMiB,
                            .is_large = true,
                            .blocks = {{1 << 30, 40 * kMiB, 40 * kMiB, 0, BlockState::kAllocated}}});
  return trace;
}

ProcessRoom room_of(const AllocatorTrace& trace, const char* settings = "") {
  const RecordedSettings recorded{.known = true, .conf = settings};
  return room_at_first_refusal(trace, recorded, *find_release("2.11")).value();
}

TEST(ProcessRoom, IsWhatTheDeviceHadFreeWhereNoLimitIsLower) {
  const ProcessRoom device{70 * kMiB, 70 * kMiB, 70 * kMiB, RoomBasis::kDevice};
  AllocatorTrace trace = refused_trace(30 * kMiB);
  EXPECT_EQ(room_of(trace), device);
  trace.reserve_limit = {900 * kMiB, 900 * kMiB, 900 * kMiB};
  EXPECT_EQ(room_of(trace), device);
}

TEST(ProcessRoom, IsTheLimitThatIsTold) {
  AllocatorTrace trace = refused_trace(900 * kMiB);
  trace.reserve_limit = {60 * kMiB, 60 * kMiB, 60 * kMiB};
  EXPECT_EQ(room_of(trace), (ProcessRoom{60 * kMiB, 60 * kMiB, 60 * kMiB, RoomBasis::kLimit}));
  // Rounded, but not to less than was reserved.
  trace.reserve_limit = {60 * kMiB, 35 * kMiB, 65 * kMiB};
  EXPECT_EQ(room_of(trace), (ProcessRoom{60 * kMiB, 40 * kMiB, 65 * kMiB, RoomBasis::kRounded}));
  // Set below what was reserved already, it allows no more.
  trace.reserve_limit = {20 * kMiB, 20 * kMiB, 20 * kMiB};
  EXPECT_EQ(room_of(trace).bytes, 40 * kMiB);
}

TEST(ProcessRoom, TheSettingsKnowARoundedLimitToTheByte) {
  AllocatorTrace trace = refused_trace(900 * kMiB);
  const char* tenth = "per_process_memory_fraction:0.1";
  const ProcessRoom exact{100 * kMiB, 100 * kMiB, 100 * kMiB, RoomBasis::kLimit, true};
  EXPECT_EQ(room_of(trace, tenth), exact);
  trace.reserve_limit = {99 * kMiB, 98 * kMiB, 101 * kMiB};
  EXPECT_EQ(room_of(trace, tenth), exact);
  // The program has set another one since.
  trace.reserve_limit = {80 * kMiB, 79 * kMiB, 81 * kMiB};
  EXPECT_EQ(room_of(trace, tenth),
            (ProcessRoom{80 * kMiB, 79 * kMiB, 81 * kMiB, RoomBasis::kRounded}));
}

TEST(ProcessRoom, OfALimitThatNobodyToldTheRefusalGivesBounds) {
  EXPECT_EQ(room_of(refused_trace(900 * kMiB)),
            (ProcessRoom{40 * kMiB, 40 * kMiB, 104 * kMiB - 1, RoomBasis::kRefusals}));
}

TEST(ProcessRoom, AnotherFractionInTheSettingsIsAnotherLimit) {
  const ProcessRoom room{100 * kMiB, 100 * kMiB, 100 * kMiB, RoomBasis::kLimit, true};
  AllocatorConfig config{.memory_fraction = 0.2};
  take_room(room, 1000 * kMiB, &config);
  EXPECT_EQ(config.capacity_bytes, 200 * kMiB);
  EXPECT_EQ(config.memory_fraction, 1);
  AllocatorConfig plain;
  take_room({60 * kMiB, 60 * kMiB, 60 * kMiB, RoomBasis::kDevice}, 1000 * kMiB, &plain);
  EXPECT_EQ(plain.capacity_bytes, 60 * kMiB);
  EXPECT_FALSE(plain.memory_fraction);
}

}  // namespace
}  // namespace gpumemprof

#include "analysis/leaks/leak_limit.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(LeakLimit, IsReachedAfterTheWholeStepsThatFitIntoWhatIsLeft) {
  const Leak leak{.stacks = {{}}, .bytes_a_step = 300, .seconds_a_step = 0.5};
  const Tables tables;
  // 10,000 - 1,000 bytes are 30 steps of 300, which take 15 seconds.
  LeakLimit limit = limit_of(leak, room_of(0, tables, 1000, 10'000, nullptr));
  EXPECT_EQ(limit.limit_bytes, 10'000u);
  EXPECT_EQ(limit.steps_left, 30u);
  EXPECT_EQ(limit.seconds_left, 15u);
  // One byte less is no 30th step; 29.997 steps take 14.998 seconds.
  limit = limit_of(leak, room_of(0, tables, 1001, 10'000, nullptr));
  EXPECT_EQ(limit.steps_left, 29u);
  EXPECT_EQ(limit.seconds_left, 14u);
}

TEST(LeakLimit, IsReachedWhereMoreIsHeldThanThereIs) {
  const Room room = room_of(0, {}, 9000, 8000, nullptr);
  const LeakLimit limit = limit_of({.stacks = {{}}, .bytes_a_step = 300, .seconds_a_step = 0.5}, room);
  EXPECT_EQ(limit.steps_left, 0u);
  EXPECT_EQ(limit.seconds_left, 0u);
}

TEST(LeakLimit, WithoutThePaceOfStepsThereAreNoSeconds) {
  const LeakLimit limit = limit_of({.stacks = {{}}, .bytes_a_step = 2.5}, room_of(0, {}, 0, 1000, nullptr));
  EXPECT_EQ(limit.steps_left, 400u);
  EXPECT_EQ(limit.seconds_left, std::nullopt);
}

TEST(LeakLimit, OfGrowthThatSlowsIsNotForeseen) {
  const LeakLimit limit =
      limit_of({.stacks = {{.growth = {.slows = true}}}, .bytes_a_step = 300}, room_of(0, {}, 0, 1000, nullptr));
  EXPECT_EQ(limit.steps_left, std::nullopt);
  EXPECT_EQ(limit.why_unknown, "the growth slows down");
}

TEST(LeakLimit, WithoutASizeThereIsNoLimitAndAReason) {
  const LeakLimit limit = limit_of({.stacks = {{}}, .bytes_a_step = 300}, room_of(0, {}, 0, std::nullopt, nullptr));
  EXPECT_EQ(limit.limit_bytes, std::nullopt);
  EXPECT_EQ(limit.steps_left, std::nullopt);
  EXPECT_FALSE(limit.why_unknown.empty());
}

TEST(Room, OfTheHostIsWhatWasLeftOfItForThatProcess) {
  Tables tables;
  tables.processes = {{.pid = 10, .host = "a"}, {.pid = 10, .host = "b"}};
  tables.devices = {{.process = 1, .type = 0}, {.process = 1, .type = 1, .index = 0}};
  const std::vector<HostRoom> rooms = {{10, "a", 100, 5}, {10, "b", 8000, 900}};
  const Room room = room_of(0, tables, 7000, std::nullopt, &rooms);
  EXPECT_EQ(room.limit_bytes, 8000u);
  EXPECT_EQ(room.free_bytes, 900u) << "others hold memory, too";
  EXPECT_EQ(room_of(1, tables, 0, std::nullopt, &rooms).limit_bytes, std::nullopt) << "a GPU's";
  EXPECT_EQ(room_of(0, tables, 7000, 7100, &rooms).free_bytes, 100u) << "given by the user";
}

}  // namespace
}  // namespace gpumemprof

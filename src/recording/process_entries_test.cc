#include "recording/process_entries.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

Device device(int8_t index, const std::string& name = {}) {
  return {.process = 1, .type = 1, .index = index, .name = name};
}

FollowedAllocator allocator(int8_t type, int8_t index) {
  return {.process = 1, .type = type, .index = index, .is_followed = true};
}

/// Two processes; the first one has a device of its own.
Tables two_processes() {
  Tables tables;
  tables.processes.resize(2);
  tables.devices.push_back({.process = 0, .type = 1, .index = 0});
  return tables;
}

TEST(ProcessEntries, ADeviceIsAddedOnceAndAnotherProcessHasItsOwn) {
  Tables tables = two_processes();
  ProcessEntries entries(&tables, 1);
  EXPECT_EQ(entries.device(device(0)), 1);
  EXPECT_EQ(entries.device(device(1)), 2);
  EXPECT_EQ(entries.device(device(1, "pool")), 3);
  EXPECT_EQ(entries.device(device(0)), 1);
  EXPECT_EQ(tables.devices.size(), 4u);
}

TEST(ProcessEntries, WhatOthersAddedForTheProcessIsFound) {
  Tables tables = two_processes();
  tables.devices.push_back(device(5));
  ProcessEntries entries(&tables, 1);
  tables.devices.push_back(device(6));
  EXPECT_EQ(entries.device(device(5)), 1);
  EXPECT_EQ(entries.device(device(6)), 2);
  EXPECT_EQ(tables.devices.size(), 3u);
}

TEST(ProcessEntries, DevicesThatDoNotFitCostNoMoreThanOthers) {
  Tables tables = two_processes();
  ProcessEntries entries(&tables, 1);
  constexpr int kWanted = 70'000;
  int added = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kWanted; ++i) added += entries.device(device(0, std::to_string(i))) >= 0;
  }
  EXPECT_EQ(tables.devices.size(), 65'536u);
  EXPECT_EQ(added, 2 * 65'535);
  EXPECT_EQ(entries.steps(), 65'535u) << "each entry of the process is used once";
}

TEST(ProcessEntries, AnAllocatorThatIsToldOfAgainIsNotLookedForAmongAll) {
  Tables tables = two_processes();
  tables.allocators.push_back({.process = 0, .type = 1, .index = 0, .is_followed = true});
  ProcessEntries entries(&tables, 1);
  for (int round = 0; round < 3; ++round) {
    for (int type = 0; type < 100; ++type) {
      for (int index = 0; index < 100; ++index) {
        entries.add_allocator(allocator(static_cast<int8_t>(type), static_cast<int8_t>(index)));
      }
    }
  }
  EXPECT_EQ(tables.allocators.size(), 10'001u);
  EXPECT_EQ(entries.steps(), 10'000u);
  FollowedAllocator lost = allocator(7, 9);
  lost.is_followed = false, lost.why_not = "the ring was full";
  entries.add_allocator(lost);
  const FollowedAllocator& known = tables.allocators[1 + 7 * 100 + 9];
  EXPECT_FALSE(known.is_followed);
  EXPECT_EQ(known.why_not, "the ring was full");
  EXPECT_TRUE(tables.allocators[0].is_followed);
}

}  // namespace
}  // namespace gpumemprof

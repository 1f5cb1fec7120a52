#include "analysis/compare/pick_device.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

/// A program, a worker that it started, and a process of another host with the program's number.
TEST(PickDevice, ByTheRoleOfItsProcess) {
  Tables tables;
  tables.processes = {{.pid = 7, .parent_pid = 1, .host = "one"},
                      {.pid = 8, .parent_pid = 7, .host = "one"},
                      {.pid = 9, .parent_pid = 7, .host = "two"}};
  Analysis analysis;
  analysis.devices.resize(3);
  for (uint16_t i = 0; i < 3; ++i) {
    tables.devices.push_back({.process = i});
    analysis.devices[i].device = i;
    analysis.devices[i].figures.peak_bytes = 10u * (i + 1);
  }
  EXPECT_EQ(main_device(analysis, tables), &analysis.devices[2]);
  EXPECT_EQ(main_device_of_role(analysis, tables, {.is_worker = true}), &analysis.devices[1]);
  EXPECT_EQ(main_device_of_role(analysis, tables, {.is_worker = false}), &analysis.devices[2]);
  tables.processes[1].parent_pid = 1;
  EXPECT_EQ(main_device_of_role(analysis, tables, {.is_worker = true}), nullptr);
}

TEST(PickDevice, ByTheRankOfItsProcess) {
  Tables tables;
  tables.processes = {{.pid = 7, .rank = 0}, {.pid = 8, .rank = 1}};
  Analysis analysis;
  analysis.devices.resize(2);
  for (uint16_t i = 0; i < 2; ++i) {
    tables.devices.push_back({.process = i, .name = "cpu"});
    analysis.devices[i].device = i;
    analysis.devices[i].figures.peak_bytes = 10u * (i + 1);
  }
  EXPECT_EQ(*pick_device(analysis, tables, "cpu"), &analysis.devices[1]);
  for (const char* name : {"rank 0/cpu", "rank0/cpu", "7/cpu"})
    EXPECT_EQ(*pick_device(analysis, tables, name), &analysis.devices[0]) << name;
  for (const char* name : {"rank 2/cpu", "rank/cpu", "rank 0/cuda:0"})
    EXPECT_FALSE(pick_device(analysis, tables, name)) << name;
  EXPECT_EQ(main_device_of_role(analysis, tables, {.rank = 0}), &analysis.devices[0]);
  EXPECT_EQ(main_device_of_role(analysis, tables, {}), &analysis.devices[1]) << "it has no rank";
}

}  // namespace
}  // namespace gpumemprof

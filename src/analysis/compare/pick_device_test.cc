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
  EXPECT_EQ(main_device_of_role(analysis, tables, true), &analysis.devices[1]);
  EXPECT_EQ(main_device_of_role(analysis, tables, false), &analysis.devices[2]);
  tables.processes[1].parent_pid = 1;
  EXPECT_EQ(main_device_of_role(analysis, tables, true), nullptr);
}

}  // namespace
}  // namespace gpumemprof

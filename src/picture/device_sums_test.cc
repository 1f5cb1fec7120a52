#include "picture/device_sums.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

constexpr int kPid = 7;

Accelerator device_at(const char* place, uint64_t own_bytes, uint64_t others_bytes) {
  Accelerator out;
  out.vendor = "nvidia";
  out.pci_bus_id = Known<std::string>::of(place);
  out.memory.used = Quantity::of(own_bytes + others_bytes);
  out.memory.reserved = Quantity::of(0);
  AcceleratorProcess own{.pid = kPid, .here = true}, other{.pid = 9};
  own.used = Quantity::of(own_bytes), other.used = Quantity::of(others_bytes);
  out.processes = Known<std::vector<AcceleratorProcess>>::of({own, other});
  return out;
}

DriverMemories memories(std::vector<std::optional<PciAddress>> places) {
  DriverMemories out;
  for (const auto& place : places) {
    DriverDevice& device = out.devices.emplace_back();
    device.index = static_cast<int8_t>(out.devices.size() - 1), device.place = place;
  }
  return out;
}

TEST(DeviceSums, DevicesAreFoundByTheirPlaceWhateverTheirNumbers) {
  Accelerators said;
  said.devices = {device_at("00000000:07:00.0", 100, 1), device_at("00000000:47:00.0", 200, 2)};
  said.devices[1].number = 1;
  const DriverMemories driver = memories({0x4700, 0x0700, 0x0900});
  const auto sums = device_sums(&driver, said, kPid, 5);
  ASSERT_EQ(sums.size(), 3u);
  EXPECT_EQ(sums[0].name, "cuda:0");
  EXPECT_EQ(sums[0].accelerator, "nvidia:1");
  EXPECT_EQ(sums[0].sum.process_bytes, 200u);
  EXPECT_EQ(sums[0].sum.others_bytes, 2u);
  EXPECT_EQ(sums[0].sum.of_no_process_bytes, 0);
  EXPECT_EQ(sums[0].sum.unexplained_bytes, 200);
  EXPECT_EQ(sums[1].accelerator, "nvidia:0");
  EXPECT_EQ(sums[1].sum.process_bytes, 100u);
  EXPECT_EQ(sums[2].accelerator, "");
  EXPECT_EQ(sums[2].sum.process_bytes, std::nullopt);
}

TEST(DeviceSums, WithoutAPlaceTheOnlyDeviceOfTheProcessIsTheOne) {
  Accelerators said;
  said.devices = {device_at("00000000:07:00.0", 100, 1), device_at("00000000:47:00.0", 200, 2)};
  const DriverMemories one = memories({std::nullopt});
  EXPECT_EQ(device_sums(&one, said, kPid, 5)[0].accelerator, "") << "it is on both";
  said.devices.pop_back();
  EXPECT_EQ(device_sums(&one, said, kPid, 5)[0].sum.process_bytes, 100u);
  EXPECT_EQ(device_sums(&one, said, std::nullopt, 5)[0].sum.process_bytes, std::nullopt);
  EXPECT_TRUE(device_sums(nullptr, said, kPid, 5).empty());
}

TEST(DeviceSums, WhatOneOfTheOthersDoesNotTellIsNotTakenForNothing) {
  Accelerators said;
  said.devices = {device_at("00000000:07:00.0", 100, 1)};
  std::vector<AcceleratorProcess> processes = *said.devices[0].processes.value;
  processes[1].used = Quantity::absent("not available");
  said.devices[0].processes = Known<std::vector<AcceleratorProcess>>::of(processes);
  const DriverMemories one = memories({0x0700});
  const auto sums = device_sums(&one, said, kPid, 5);
  EXPECT_EQ(sums[0].sum.process_bytes, 100u);
  EXPECT_EQ(sums[0].sum.others_bytes, std::nullopt);
  // Under another number than here the process may be one of the others.
  processes[0].here = false;
  said.devices[0].processes = Known<std::vector<AcceleratorProcess>>::of(processes);
  EXPECT_EQ(device_sums(&one, said, kPid, 5)[0].sum.process_bytes, std::nullopt);
}

}  // namespace
}  // namespace gpumemprof

// What samples say of each process.
#include "analysis/driver/device_truth.h"

#include <gtest/gtest.h>

#include "recording/samples_file.h"
#include "trace/tables.h"

namespace gpumemprof {
namespace {

/// Samples as a file of `run` has them, told series by series.
struct Told {
  RecordedSamples samples;

  explicit Told(size_t looks) {
    samples.host = "box";
    for (size_t i = 0; i < looks; ++i) samples.looks.push_back({.time_ns = 10 * (i + 1)});
  }
  void number(const char* device, const char* field, int64_t pid, uint32_t look, uint64_t bytes) {
    add(device, field, pid, {look, SampledKind::kNumber, bytes});
  }
  void add(const char* device, const char* field, int64_t pid, RecordedSamples::Point point) {
    const SampleKey key{"NVML", device, field, pid};
    size_t at = samples.find(key);
    if (at == SIZE_MAX) {
      at = samples.series.size();
      samples.series.push_back(key);
      samples.points.emplace_back();
    }
    samples.points[at].push_back(point);
  }
};

std::vector<TruthOfProcess> truths_of(const Told& told, const std::vector<uint32_t>& pids,
                                      std::vector<std::string>* problems = nullptr) {
  static std::vector<RecordedSamples> kept;  // hosts of truths are its
  kept = {told.samples};
  std::vector<Process> processes;
  for (uint32_t pid : pids) processes.push_back({.pid = pid, .host = "box"});
  std::vector<std::string> none;
  return device_truths(kept, processes, problems ? problems : &none);
}

TEST(DeviceTruth, OfSeveralDevicesThoseWhosePlacesAreToldAreHeldApart) {
  Told told(1);
  for (const char* device : {"nvidia:0", "nvidia:1"}) {
    told.number(device, "used_bytes", 7, 0, device[7] == '0' ? 300 : 400);
    told.number(device, "used_bytes", 0, 0, 1000);
  }
  EXPECT_TRUE(truths_of(told, {7}).empty());
  told.samples.texts = {"00000000:07:00.0", "00000000:47:00.0"};
  told.add("nvidia:0", "pci_bus_id", 0, {0, SampledKind::kText, 0});
  EXPECT_TRUE(truths_of(told, {7}).empty());
  told.add("nvidia:1", "pci_bus_id", 0, {0, SampledKind::kText, 1});
  const auto truths = truths_of(told, {7});
  ASSERT_EQ(truths.size(), 2u);
  EXPECT_FALSE(truths[0].is_only_device);
  EXPECT_EQ(truths[0].place, 0x0700u);
  EXPECT_EQ(truths[0].truth.process_used_bytes, 300u);
  EXPECT_EQ(truths[1].place, 0x4700u);
  EXPECT_EQ(truths[1].truth.process_used_bytes, 400u);
}

TEST(DeviceTruth, EverySampleThatNamesTheProcessIsOne) {
  Told told(3);
  told.number("nvidia:0", "used_bytes", 0, 0, 1000);
  told.number("nvidia:0", "reserved_bytes", 0, 0, 100);
  told.number("nvidia:0", "used_bytes", 7, 1, 300);
  told.number("nvidia:0", "used_bytes", 8, 1, 200);
  told.number("nvidia:0", "used_bytes_of_driver_pid", 9, 2, 50);
  told.number("nvidia:0", "processes", 0, 1, 2);
  told.number("nvidia:0", "processes", 0, 2, 3);
  const auto truths = truths_of(told, {7, 8});
  ASSERT_EQ(truths.size(), 4u);
  const DeviceTruth& last = truths[2].truth;
  EXPECT_EQ(truths[2].pid, 7u);
  EXPECT_EQ(last.time_ns, 30u);
  EXPECT_EQ(last.device_used_bytes, 1000u);
  EXPECT_EQ(last.reserved_bytes, 100u);
  EXPECT_EQ(last.process_used_bytes, 300u);
  EXPECT_EQ(last.others_used_bytes, 250u);
}

TEST(DeviceTruth, TheHostsMemoryIsNotTheDevices) {
  Told told(1);
  told.number("nvidia:0", "used_bytes", 7, 0, 300);
  told.samples.series.push_back({"/proc/meminfo", "nvidia:0", "used_bytes", 0});
  told.samples.points.push_back({{0, SampledKind::kNumber, 1000}});
  const auto truths = truths_of(told, {7});
  ASSERT_EQ(truths.size(), 1u);
  EXPECT_EQ(truths[0].truth.process_used_bytes, 300u);
  EXPECT_FALSE(truths[0].truth.device_used_bytes);
}

TEST(DeviceTruth, OneThatIsNotToldMakesTheSumOfOthersUnknown) {
  Told told(1);
  told.samples.texts = {"no permission"};
  told.number("nvidia:0", "used_bytes", 7, 0, 300);
  told.add("nvidia:0", "used_bytes", 8, {0, SampledKind::kAbsent, 0});
  told.number("nvidia:0", "processes", 0, 0, 2);
  const auto truths = truths_of(told, {7, 8});
  ASSERT_EQ(truths.size(), 1u);
  EXPECT_FALSE(truths[0].truth.others_used_bytes.has_value());
  EXPECT_FALSE(truths[0].truth.device_used_bytes.has_value());
}

TEST(DeviceTruth, AProcessOnTwoDevicesIsLeftOutAndASliceIsNoDevice) {
  Told told(1);
  told.number("nvidia:0", "used_bytes", 7, 0, 300);
  told.number("nvidia:1", "used_bytes", 7, 0, 300);
  told.number("nvidia:0", "used_bytes", 8, 0, 5);
  told.number("nvidia:0 slice 1", "used_bytes", 9, 0, 5);
  told.number("nvidia:0", "processes", 0, 0, 2);
  const auto truths = truths_of(told, {7, 8, 9});
  ASSERT_EQ(truths.size(), 1u);
  EXPECT_EQ(truths[0].pid, 8u);
  EXPECT_EQ(truths[0].truth.others_used_bytes, 300u);
}

TEST(DeviceTruth, OnlyProcessesOfTheRecordingAreThere) {
  Told told(1000);
  for (int64_t pid = 1; pid <= 500; ++pid) told.number("nvidia:0", "used_bytes", pid, 0, 10);
  told.number("nvidia:0", "processes", 0, 0, 500);
  const auto truths = truths_of(told, {7});
  ASSERT_EQ(truths.size(), 1000u);
  EXPECT_EQ(truths[999].pid, 7u);
  EXPECT_EQ(truths[999].truth.others_used_bytes, 4990u);
  told.samples.host = "another";
  EXPECT_TRUE(truths_of(told, {7}).empty());
}

TEST(DeviceTruth, WhereMoreProcessesAreThereThanListedTheSumIsUnknown) {
  Told told(2);
  told.number("nvidia:0", "used_bytes", 7, 0, 300);
  told.number("nvidia:0", "used_bytes", 8, 0, 200);
  told.number("nvidia:0", "processes", 0, 0, 3);
  told.number("nvidia:0", "processes", 0, 1, 2);
  const auto truths = truths_of(told, {7});
  ASSERT_EQ(truths.size(), 2u);
  EXPECT_FALSE(truths[0].truth.others_used_bytes.has_value());
  EXPECT_EQ(truths[1].truth.others_used_bytes, 200u);
}

TEST(DeviceTruth, ANumberOfTwoNamespacesIsNotCountedTwice) {
  Told told(2);
  told.number("nvidia:0", "used_bytes", 7, 0, 300);
  told.number("nvidia:0", "used_bytes", 8, 0, 200);
  told.number("nvidia:0", "used_bytes_of_driver_pid", 8, 0, 200);
  told.add("nvidia:0", "used_bytes_of_driver_pid", 8, {1, SampledKind::kGone, 0});
  told.number("nvidia:0", "processes", 0, 0, 2);
  const auto truths = truths_of(told, {7});
  ASSERT_EQ(truths.size(), 2u);
  EXPECT_FALSE(truths[0].truth.others_used_bytes.has_value());
  EXPECT_EQ(truths[1].truth.others_used_bytes, 200u);
}

TEST(DeviceTruth, WhatNoMachineHasIsLeftOutAndSaid) {
  Told told(1024);
  std::vector<uint32_t> pids;
  for (uint32_t pid = 1; pid <= 1100; ++pid) {
    told.number("nvidia:0", "used_bytes", pid, 0, 1);
    pids.push_back(pid);
  }
  std::vector<std::string> problems;
  EXPECT_EQ(truths_of(told, pids, &problems).size(), 1'000'000u);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_NE(problems[0].find("samples of 76 processes"), std::string::npos);
  EXPECT_NE(problems[1].find("only the first 1000000 samples"), std::string::npos);
}

}  // namespace
}  // namespace gpumemprof

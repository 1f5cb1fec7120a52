// How full a machine was, by arithmetic over made-up samples.
#include "analysis/driver/device_use.h"

#include <gtest/gtest.h>

#include "recording/samples_file.h"
#include "recording/samples_writer.h"
#include "recording/test_reading.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

SampleKey on_device(const char* field, int64_t pid = 0) { return {"NVML", "nvidia:0", field, pid}; }
SampleKey on_host(const char* field, int64_t pid = 0) { return {"/proc", "host", field, pid}; }

/// At second i: the device is used to 100 + 10 i of 500; process 7 of the run has 20 i, process 9
/// of somebody else 40; the host has 60 of 100 left, and process 7 holds 5 + i of it.
TakenSample at_second(uint64_t i, SampleCause cause = SampleCause::kPeriod) {
  return {(i + 1) * kSecond,
          cause,
          {{on_device("name"), SampledValue::of_text("A GPU")},
           {on_device("total_bytes"), SampledValue::of(500)},
           {on_device("used_bytes"), SampledValue::of(100 + 10 * i)},
           {on_device("processes"), SampledValue::of(2)},
           {on_device("used_bytes", 7), SampledValue::of(20 * i)},
           {on_device("used_bytes", 9), SampledValue::of(40)},
           {on_host("total_bytes"), SampledValue::of(100)},
           {on_host("available_bytes"), SampledValue::of(60)},
           {on_host("limit_bytes"), SampledValue::absent("no cgroup limits this process")},
           {on_host("resident_bytes", 7), SampledValue::of(5 + i)}}};
}

RecordedSamples written_and_read(const std::vector<TakenSample>& samples) {
  for_tests::TempFolder folder;
  auto writer = SamplesWriter::create(folder.path(), {.pid = 3}, 0);
  EXPECT_TRUE(writer);
  for (const TakenSample& sample : samples) EXPECT_TRUE(writer->add(sample));
  auto read = read_samples_file(writer->path());
  EXPECT_TRUE(read);
  return read ? *read : RecordedSamples{};
}

TEST(DeviceUse, AddsUpWhatTheRunHasAndNobodyElse) {
  const auto samples = written_and_read({at_second(0, SampleCause::kStart), at_second(1),
                                         at_second(2, SampleCause::kOom), at_second(3)});
  const auto use = device_use({samples}, 2 * kSecond + kSecond / 3);
  ASSERT_TRUE(use);
  EXPECT_EQ(use->looks, 4u);
  EXPECT_EQ(use->first_time_ns, kSecond);
  EXPECT_EQ(use->last_time_ns, 4 * kSecond);
  ASSERT_EQ(use->devices.size(), 1u);
  const MemoryUse& device = use->devices[0];
  EXPECT_EQ(device.model, "A GPU");
  EXPECT_EQ(device.run_pid, 3u);
  EXPECT_EQ(device.total.bytes, 500u);
  EXPECT_EQ(device.highest->used.bytes, 130u);
  EXPECT_EQ(device.highest->own.bytes, 60u);
  EXPECT_EQ(device.at_peak->time_ns, 2 * kSecond);
  EXPECT_EQ(device.at_peak->own.bytes, 20u);
  ASSERT_EQ(device.at_refusals.size(), 1u);
  EXPECT_EQ(device.at_refusals[0].used.bytes, 120u);
  ASSERT_EQ(use->hosts.size(), 1u);
  EXPECT_EQ(use->hosts[0].highest->used.bytes, 40u);
  EXPECT_EQ(use->hosts[0].highest_own->own.bytes, 8u);
  EXPECT_EQ(use->hosts[0].limit.absent_because(), "no cgroup limits this process");
}

TEST(DeviceUse, ASampleWithoutTheRunsProcessesSaysNothingOfThePeakOrARefusal) {
  TakenSample ended = at_second(1);
  std::erase_if(ended.values, [](const auto& one) { return one.first.pid != 0; });
  ended.cause = SampleCause::kOom;
  const auto samples = written_and_read({at_second(0), ended});
  const auto use = device_use({samples}, 2 * kSecond - kSecond / 3);
  const MemoryUse& host = use->hosts.at(0);
  EXPECT_EQ(host.at_peak->time_ns, 2 * kSecond);
  EXPECT_FALSE(host.at_peak->own.bytes);
  EXPECT_EQ(host.at_peak->own.absent_because(), "no process of the run was in this sample");
  ASSERT_EQ(host.at_refusals.size(), 1u);
  EXPECT_EQ(host.at_refusals[0].used.bytes, 40u);
  EXPECT_FALSE(host.at_refusals[0].own.bytes);
  EXPECT_EQ(host.looks[1].own.bytes, 0u) << "at that moment it is known";
}

TEST(DeviceUse, OfADeviceThatSharesTheHostsMemoryTheSourceIsTheHost) {
  TakenSample sample = at_second(1);
  for (auto& [key, said] : sample.values)
    if (key.device == "nvidia:0" && key.pid == 0 && key.field.ends_with("_bytes"))
      key.source = "/proc/meminfo";
  const auto use = device_use({written_and_read({sample})}, std::nullopt);
  ASSERT_EQ(use->devices.size(), 1u);
  EXPECT_EQ(use->devices[0].source, "/proc/meminfo");
  EXPECT_EQ(use->devices[0].highest->used.bytes, 110u);
  EXPECT_EQ(use->devices[0].highest->own.bytes, 20u);
}

TEST(DeviceUse, WhatTheDriverDoesNotTellStaysUnknown) {
  TakenSample hidden = at_second(0);
  for (auto& [key, value] : hidden.values) {
    if (key == on_device("processes")) value = SampledValue::absent("not permitted");
  }
  TakenSample unknown = at_second(1);
  for (auto& [key, value] : unknown.values) {
    if (key == on_device("used_bytes", 7)) value = SampledValue::absent("not available");
  }
  const auto use = device_use({written_and_read({hidden, unknown})}, std::nullopt);
  ASSERT_TRUE(use);
  const auto& looks = use->devices[0].looks;
  EXPECT_EQ(looks[0].own.absent_because(), "not permitted");
  EXPECT_EQ(looks[1].own.absent_because(), "not available");
  EXPECT_FALSE(use->devices[0].highest_own);
  EXPECT_FALSE(use->devices[0].at_peak);
}

TEST(DeviceUse, WhereTheDriversNumbersAreNobodysHereTheRunsShareIsUnknown) {
  TakenSample outside = at_second(0);
  for (auto& [key, value] : outside.values)
    if (key.device == "nvidia:0" && key.pid != 0)
      key = on_device("used_bytes_of_driver_pid", key.pid);
  TakenSample none = at_second(1);
  std::erase_if(none.values, [](const auto& one) {
    return one.first.device == "nvidia:0" && one.first.pid != 0;
  });
  TakenSample nobody = none;
  nobody.time_ns += kSecond;
  for (auto& [key, value] : nobody.values)
    if (key == on_device("processes")) value = SampledValue::of(0);
  const auto use = device_use({written_and_read({outside, none, nobody})}, std::nullopt);
  ASSERT_TRUE(use);
  const auto& looks = use->devices[0].looks;
  ASSERT_EQ(looks.size(), 3u);
  EXPECT_EQ(looks[0].own.absent_because(), "the driver's PIDs belong to another PID namespace");
  EXPECT_EQ(looks[1].own.absent_because(), "the driver names more processes than were sampled");
  EXPECT_EQ(looks[2].own.bytes, 0u);
}

TEST(DeviceUse, WhatNoMachineHasIsThinnedOutAndSaid) {
  RecordedSamples samples;
  samples.path = "a.gms";
  for (uint64_t i = 0; i < 8000; ++i) samples.looks.push_back({.time_ns = i});
  for (int i = 0; i < 1500; ++i) {
    samples.series.push_back({"NVML", "nvidia:" + std::to_string(i), "used_bytes", 0});
    samples.points.push_back({{0, SampledKind::kNumber, 5}});
  }
  const auto use = device_use({samples}, std::nullopt);
  ASSERT_TRUE(use);
  EXPECT_EQ(use->devices.size(), 1024u);
  size_t looks = 0;
  for (const MemoryUse& one : use->devices) looks += one.looks.size();
  EXPECT_EQ(looks, 1024u * 2667);  // every third of 8000
  EXPECT_EQ(use->left_out,
            (std::vector<std::string>{"a.gms: of its machine samples one in 3 is used",
                                      "a.gms: 476 devices of its samples are left out"}));
}

TEST(DeviceUse, SaysWhyThereIsNoDevice) {
  TakenSample sample = at_second(0);
  std::erase_if(sample.values, [](const auto& one) { return one.first.device != "host"; });
  sample.values.emplace_back(SampleKey{"gpumemprof", "accelerators", "devices", 0},
                             SampledValue::absent("none was asked"));
  const auto use = device_use({written_and_read({sample})}, std::nullopt);
  ASSERT_TRUE(use);
  EXPECT_TRUE(use->devices.empty());
  EXPECT_EQ(use->no_devices_because, "none was asked");
  EXPECT_FALSE(device_use({}, std::nullopt));
}

}  // namespace
}  // namespace gpumemprof

// Figures of accelerators in samples, against the files of the boards that the fake NVML shows.
#include "live/device_watch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/size.h"
#include "devices/fake_root.h"
#include "live/sampler.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kSecond = 1'000'000'000;

class Watched : public FakeRoot {
 protected:
  Watched() {
    std::filesystem::create_directories(root_ + "/proc/self/ns");
    std::filesystem::create_symlink("pid:[4026531836]", root_ + "/proc/self/ns/pid");
  }
  ~Watched() override { unsetenv("FAKE_NVML_BOARD"); }
  DeviceRoot machine(const std::string& board) {
    setenv("FAKE_NVML_BOARD", (GPUMEMPROF_BOARDS "/" + board + ".yaml").c_str(), 1);
    return {root_, GPUMEMPROF_FAKES "/nvml-3/libnvidia-ml.so.1"};
  }
};

TEST_F(Watched, WhatADeviceHoldsIsThisProcessOthersAndTheDriver) {
  put_process(4101, "Name: python\n", 1);
  DeviceWatch watch(machine("a100-80gb"));
  watch.look(kSecond);
  TelemetryEvent event;
  Json metadata;
  put_matched(watch, {}, 4101, 0, &event, &metadata);
  EXPECT_EQ(event.used_bytes, (20314 + 633) * kMiB);
  EXPECT_EQ(event.total_bytes, 81920 * kMiB);
  EXPECT_EQ(event.free_bytes, (81920 - 20314 - 633) * kMiB);
  EXPECT_EQ(metadata["accelerator_uuid"], "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f");
  EXPECT_EQ(metadata["process_device_bytes"], 17822 * kMiB);
  EXPECT_EQ(metadata["driver_reserved_bytes"], 633 * kMiB);
  EXPECT_EQ(metadata["others_device_bytes"], (20314 - 17822) * kMiB);
  EXPECT_FALSE(metadata.contains("unknown"));
}

TEST_F(Watched, BetweenTwoListsOfProcessesTheirFiguresAreLeftOut) {
  put_process(4101, "Name: python\n", 1);
  DeviceWatch watch(machine("a100-80gb"));
  watch.look(kSecond);
  EXPECT_TRUE(watch.fresh_processes());
  watch.look(kSecond + kSecond / 10);
  EXPECT_FALSE(watch.fresh_processes());
  TelemetryEvent event;
  Json metadata;
  put_matched(watch, {}, 4101, 0, &event, &metadata);
  EXPECT_EQ(event.used_bytes, (20314 + 633) * kMiB);
  EXPECT_FALSE(metadata.contains("process_device_bytes"));
  watch.look(2 * kSecond);
  EXPECT_TRUE(watch.fresh_processes());
}

TEST_F(Watched, AProcessOnASliceHasTheSlicesMemory) {
  put_process(5000, "Name: python\n", 1);
  DeviceWatch watch(machine("a100-mig"));
  watch.look(kSecond);
  TelemetryEvent event;
  Json metadata;
  put_matched(watch, {}, 5000, 0, &event, &metadata);
  EXPECT_EQ(metadata["slice"], 1);
  EXPECT_EQ(event.total_bytes, 9728 * kMiB);
  EXPECT_EQ(metadata["process_device_bytes"], 480 * kMiB);
  EXPECT_EQ(metadata["others_device_bytes"], (1000 - 480) * kMiB);
}

TEST_F(Watched, WithoutADriverTheReasonStandsInThePlaceOfEachFigure) {
  DeviceWatch watch({root_, ""});
  watch.look(kSecond);
  TelemetryEvent event;
  event.used_bytes = 5;
  Json metadata;
  put_matched(watch, {}, 4101, 0, &event, &metadata);
  EXPECT_FALSE(event.used_bytes);
  EXPECT_EQ(metadata["unknown"].size(), 3u);
  EXPECT_EQ(metadata["unknown"]["device_total_bytes"],
            "no NVIDIA driver (libnvidia-ml.so.1), and no amdgpu, i915 or xe under /sys/class/drm");
}

TEST_F(Watched, AMachineIsItsMemoryAndItsAccelerators) {
  auto sampler = Sampler::open({.root = root_, .devices = machine("h200")});
  ASSERT_TRUE(sampler);
  EXPECT_EQ(sampler->subject(),
            "this machine's memory and its accelerator (no recorded process of yours is running)");
  const auto events = sampler->sample();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].device_id, -1);
  EXPECT_EQ(events[1].device_id, 0);
  EXPECT_EQ(events[1].collector, "gpumemprof.cuda_tracker");
  EXPECT_EQ(events[1].allocated_bytes, 70614 * kMiB);
  auto one = Sampler::open({.device = 0, .root = root_, .devices = machine("h200")});
  ASSERT_TRUE(one);
  EXPECT_TRUE(one->subject().starts_with("accelerator 0 (")) << one->subject();
  EXPECT_TRUE(one->notes().empty());
  EXPECT_EQ(one->why_no_device(), "");
  ASSERT_EQ(one->sample().size(), 1u);
}

TEST_F(Watched, AnAcceleratorThatIsNotThereIsNotMeasuredAsTheHost) {
  auto sixth = Sampler::open({.device = 5, .root = root_, .devices = machine("h200")});
  ASSERT_TRUE(sixth);
  EXPECT_EQ(sixth->why_no_device(), "--device 5: there is 1 accelerator here");
  auto none = Sampler::open({.device = 5, .root = root_});
  ASSERT_TRUE(none);
  EXPECT_EQ(none->why_no_device(),
            "--device 5: no NVIDIA driver (libnvidia-ml.so.1), and no amdgpu, i915 or xe under "
            "/sys/class/drm");
  put_process(12, "Name:\tpython\nVmSize:\t 90 kB\n", 10);
  auto process = Sampler::open({.pid = 12, .device = 5, .root = root_});
  ASSERT_TRUE(process);
  EXPECT_EQ(process->why_no_device(), none->why_no_device()) << "and has no recording with it";
}

TEST_F(Watched, AProcessThatIsNotRecordedHasWhatTheDriverSaysOfIt) {
  put_process(4101, "Name:\tpython\nVmSize:\t 90 kB\n", 10);
  auto sampler = Sampler::open({.pid = 4101, .root = root_, .devices = machine("a100-80gb")});
  ASSERT_TRUE(sampler);
  const auto events = sampler->sample();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].allocated_bytes, 17822 * kMiB);
  EXPECT_EQ(events[0].device_id, 0);
  EXPECT_EQ(events[0].used_bytes, (20314 + 633) * kMiB);
  EXPECT_NE(events[0].metadata.find("\"basis\":\"driver\""), std::string::npos);
  EXPECT_NE(events[1].metadata.find("\"basis\":\"process_rss\""), std::string::npos);
  EXPECT_EQ(sampler->sample().size(), 1u) << "the driver is asked once a second";
}

}  // namespace
}  // namespace gpumemprof

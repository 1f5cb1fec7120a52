// The sampler as `run` uses it, over this very process and the fake driver.
#include "run/device_sampler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/size.h"
#include "recording/samples_file.h"

namespace gpumemprof {
namespace {

class DeviceSamplerTest : public ::testing::Test {
 protected:
  DeviceSamplerTest() {
    char folder[] = "/tmp/device-sampler-XXXXXX";
    folder_ = mkdtemp(folder);
    setenv("FAKE_NVML_BOARD", GPUMEMPROF_BOARDS "/h200.yaml", 1);
  }
  ~DeviceSamplerTest() override {
    unsetenv("FAKE_NVML_BOARD");
    std::filesystem::remove_all(folder_);
  }

  /// What is sampled between the start and the end of a program that is this process.
  RecordedSamples sample(bool gpu_seen) {
    auto processes = std::make_shared<WatchedProcesses>();
    processes->set({{getpid(), 0}}, gpu_seen);
    DeviceRoot root{.root = "", .nvml = GPUMEMPROF_FAKES "/nvml-3/libnvidia-ml.so.1"};
    DeviceSampler sampler({.folder = folder_, .devices = root}, processes);
    processes->set({{getpid(), 0}}, gpu_seen);  // another thread tells, at any time
    sampler.stop();
    EXPECT_EQ(sampler.problem(), "");
    std::vector<std::string> problems;
    auto read = read_samples({folder_}, &problems);
    EXPECT_EQ(problems.size(), 0u);
    EXPECT_EQ(read.size(), 1u);
    return read.empty() ? RecordedSamples{} : read[0];
  }
  static const RecordedSamples::Point* said(const RecordedSamples& samples, const SampleKey& key) {
    const size_t series = samples.find(key);
    return series == SIZE_MAX ? nullptr : samples.at(series, 0);
  }
  std::string folder_;
};

TEST_F(DeviceSamplerTest, AsksNoDriverForAProgramThatLoadsNone) {
  const RecordedSamples samples = sample(false);
  ASSERT_GE(samples.looks.size(), 2u);
  EXPECT_EQ(samples.looks.front().cause, SampleCause::kStart);
  EXPECT_EQ(samples.looks.back().cause, SampleCause::kEnd);
  EXPECT_EQ(samples.run_pid, static_cast<uint32_t>(getpid()));
  const auto* devices = said(samples, {"gpumemprof", "accelerators", "devices", 0});
  ASSERT_NE(devices, nullptr);
  EXPECT_EQ(devices->kind, SampledKind::kAbsent);
  const auto* own = said(samples, {"/proc", "host", "resident_bytes", getpid()});
  ASSERT_NE(own, nullptr);
  EXPECT_GT(own->number, kMiB);
}

TEST_F(DeviceSamplerTest, AsksTheDriverOnceOneIsLoaded) {
  const RecordedSamples samples = sample(true);
  const auto* total = said(samples, {"NVML", "nvidia:0", "total_bytes", 0});
  ASSERT_NE(total, nullptr);
  EXPECT_EQ(total->number, 143771 * kMiB);  // as boards/h200.yaml has it
}

TEST_F(DeviceSamplerTest, AFolderThatTakesNoFileIsSaid) {
  auto processes = std::make_shared<WatchedProcesses>();
  DeviceSampler sampler({.folder = folder_ + "/nowhere"}, processes);
  sampler.stop();
  EXPECT_TRUE(sampler.problem().starts_with("machine samples are missing: "));
}

}  // namespace
}  // namespace gpumemprof

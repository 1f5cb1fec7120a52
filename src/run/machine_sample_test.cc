// What a sample holds: every figure is that of the board's file, or of the made-up /proc.
#include "run/machine_sample.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/size.h"
#include "devices/fake_root.h"

namespace gpumemprof {
namespace {

class MachineSample : public FakeRoot {
 protected:
  MachineSample() {
    std::filesystem::create_directories(root_ + "/proc/self/ns");
    std::filesystem::create_symlink("pid:[4026531836]", root_ + "/proc/self/ns/pid");
  }
  ~MachineSample() override { unsetenv("FAKE_NVML_BOARD"); }

  void ask(const std::string& board) {
    setenv("FAKE_NVML_BOARD", (GPUMEMPROF_BOARDS "/" + board + ".yaml").c_str(), 1);
    AcceleratorReader reader({root_, GPUMEMPROF_FAKES "/nvml-3/libnvidia-ml.so.1"});
    add_accelerator_values(reader.read(Depth::kEverything), &sample_);
  }
  SampledValue value(const std::string& source, const std::string& device, const std::string& field,
                     int64_t pid = 0) const {
    for (const auto& [key, said] : sample_.values) {
      if (key == SampleKey{source, device, field, pid}) return said;
    }
    return {};
  }
  TakenSample sample_;
};

TEST_F(MachineSample, HasWhatTheDriverTells) {
  put_process(4101, "Name: python\nVmSize: 1 kB\n", 1);
  ask("a100-80gb");
  const auto said = [&](const char* field, int64_t pid = 0) {
    return value("NVML", "nvidia:0", field, pid);
  };
  EXPECT_EQ(said("name"), SampledValue::of_text("NVIDIA A100-SXM4-80GB"));
  EXPECT_EQ(said("driver_version"), SampledValue::of_text("550.163.01"));
  EXPECT_EQ(said("total_bytes"), SampledValue::of(81920 * kMiB));
  EXPECT_EQ(said("used_bytes"), SampledValue::of((20314 + 633) * kMiB));
  EXPECT_EQ(said("reserved_bytes"), SampledValue::of(633 * kMiB));
  EXPECT_EQ(said("utilization_percent"), SampledValue::of(87));
  EXPECT_EQ(said("power_milliwatts"), SampledValue::of(311450));
  EXPECT_EQ(said("processes"), SampledValue::of(2));
  EXPECT_EQ(said("used_bytes", 4101), SampledValue::of(17822 * kMiB));
  EXPECT_EQ(said("host_total_bytes").kind, SampledKind::kAbsent);
  EXPECT_FALSE(said("host_total_bytes").text.empty());
  EXPECT_EQ(value("gpumemprof", "accelerators", "devices"), SampledValue::of(1));
}

TEST_F(MachineSample, MemoryThatADeviceSharesWithTheHostIsSampledAsTheHosts) {
  ask("gb10");
  EXPECT_EQ(value("/proc/meminfo", "nvidia:0", "used_bytes"), SampledValue::of(600 * 1024u));
  EXPECT_EQ(value("/proc/meminfo", "nvidia:0", "total_bytes"), SampledValue::of(1000 * 1024u));
  EXPECT_EQ(value("NVML", "nvidia:0", "used_bytes").kind, SampledKind::kGone);
  EXPECT_EQ(value("NVML", "nvidia:0", "name"), SampledValue::of_text("NVIDIA GB10"));
}

TEST_F(MachineSample, APidThatIsNobodyHereIsNotTakenForAProcess) {
  ask("a100-80gb");
  EXPECT_EQ(value("NVML", "nvidia:0", "used_bytes", 4207).kind, SampledKind::kGone);
  EXPECT_EQ(value("NVML", "nvidia:0", "used_bytes_of_driver_pid", 4207),
            SampledValue::of(2488 * kMiB));
}

TEST_F(MachineSample, ProcessesAreCountedOnceAndBeyondTheListed) {
  Accelerator device{.vendor = "nvidia"};
  device.source = "NVML";
  std::vector<AcceleratorProcess> all;
  for (int pid = 1; pid <= 70; ++pid)
    for (int times = 0; times < 2; ++times) {  // as in two slices
      all.push_back({.pid = pid, .here = pid != 3});
      all.back().used = Quantity::of(5);
    }
  device.processes.value = all;
  Accelerators told;
  told.devices.push_back(device);
  add_accelerator_values(told, &sample_);
  EXPECT_EQ(value("NVML", "nvidia:0", "processes"), SampledValue::of(70));
  EXPECT_EQ(value("NVML", "nvidia:0", "used_bytes", 64), SampledValue::of(10));
  EXPECT_EQ(value("NVML", "nvidia:0", "used_bytes_of_driver_pid", 3), SampledValue::of(10));
  EXPECT_EQ(value("NVML", "nvidia:0", "used_bytes", 65).kind, SampledKind::kGone);
}

TEST_F(MachineSample, OfALostDeviceEveryFieldSaysWhy) {
  ask("h100-pair");
  EXPECT_EQ(value("NVML", "nvidia:1", "used_bytes"),
            SampledValue::absent("the GPU has fallen off the bus (NVML: GPU is lost)"));
}

TEST(ProgramOf, IsTheCommandAndAPythonScript) {
  EXPECT_EQ(program_of("/usr/bin/python3.11 -u /a/b/c/d.py --key s"), "python3.11 b/c/d.py");
  EXPECT_EQ(program_of("python -m torch.distributed.run x"), "python -m torch.distributed.run");
  EXPECT_EQ(program_of("python -c x"), "python -c");
  EXPECT_EQ(program_of("bash a/run.sh"), "bash a/run.sh");
  EXPECT_EQ(program_of("torchrun --nproc 2 train.py"), "torchrun train.py");
  EXPECT_EQ(program_of("/x/cc1plus -quiet -I /3.11.7/include/python3.11 -o /tmp/a.s"), "cc1plus");
}

TEST_F(MachineSample, HasTheHostAndTheProcessesOfTheRun) {
  put_process(41, "Name: a\nVmHWM: 90 kB\nVmSize: 1 kB\nRssShmem: 3 kB\nVmSwap: 2 kB\n", 10);
  put("/proc/41/limits",
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max address space         50000000             unlimited            bytes     \n");
  put_process(43, "Name: b\nVmSize: 1 kB\n", 1);
  put("/proc/43/limits",
      "Limit                     Soft Limit           Hard Limit           Units     \n"
      "Max address space         unlimited            unlimited            bytes     \n");
  add_host_values(root_, {{41, 777}, {42, 777}, {43, 777}}, Walk::kNo, &sample_);
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto said = [&](const char* field, int64_t pid = 0) {
    return value("/proc", "host", field, pid);
  };
  EXPECT_EQ(said("total_bytes"), SampledValue::of(1000 * 1024));
  EXPECT_EQ(said("available_bytes"), SampledValue::of(400 * 1024));
  EXPECT_EQ(said("limit_bytes").kind, SampledKind::kAbsent);
  EXPECT_EQ(said("resident_bytes", 41), SampledValue::of(10 * page));
  EXPECT_EQ(said("peak_resident_bytes", 41), SampledValue::of(90 * 1024));
  EXPECT_EQ(said("resident_bytes", 42).kind, SampledKind::kGone);
  EXPECT_EQ(said("mapped_bytes", 41), SampledValue::of(9999 * page));
  EXPECT_EQ(said("mapped_limit_bytes", 41), SampledValue::of(50000000));
  EXPECT_EQ(said("mapped_limit_bytes", 43).kind, SampledKind::kGone) << "unlimited";
  EXPECT_EQ(said("processes"), SampledValue::of(3));
}

}  // namespace
}  // namespace gpumemprof

// NVML as a fake of ours speaks it, generation by generation; every figure is that of the board's
// file in tests/fakes/nvml/boards.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/size.h"
#include "devices/accelerators.h"
#include "devices/fake_root.h"

namespace gpumemprof {
namespace {

class Nvidia : public FakeRoot {
 protected:
  Nvidia() {
    std::filesystem::create_directories(root_ + "/proc/self/ns");
    see_namespace("pid:[4026531836]");
  }
  ~Nvidia() override { unsetenv("FAKE_NVML_BOARD"); }

  void see_namespace(const std::string& name) {
    std::filesystem::remove(root_ + "/proc/self/ns/pid");
    std::filesystem::create_symlink(name, root_ + "/proc/self/ns/pid");
  }
  static std::string library(int generation) {
    return GPUMEMPROF_FAKES "/nvml-" + std::to_string(generation) + "/libnvidia-ml.so.1";
  }
  Accelerators read(const std::string& board, int generation = 3,
                    Depth depth = Depth::kEverything) {
    const std::string path =
        board.starts_with("/") ? board : GPUMEMPROF_BOARDS "/" + board + ".yaml";
    setenv("FAKE_NVML_BOARD", path.c_str(), 1);
    return AcceleratorReader({root_, library(generation)}).read(depth);
  }
};

TEST_F(Nvidia, AnA100IsReadWithAllThatTheDriverTells) {
  put_process(4101, "Name: python\n", 1);
  const Accelerators all = read("a100-80gb");
  ASSERT_EQ(all.devices.size(), 1u);
  EXPECT_TRUE(all.notes.empty());
  const Accelerator& device = all.devices[0];
  EXPECT_EQ(device.vendor, "nvidia");
  EXPECT_EQ(device.name.value, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(device.uuid.value, "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f");
  EXPECT_EQ(device.pci_bus_id.value, "00000000:07:00.0");
  EXPECT_EQ(device.driver_version.value, "550.163.01");
  EXPECT_EQ(device.memory.total.bytes, 81920 * kMiB);
  EXPECT_EQ(device.memory.reserved.bytes, 633 * kMiB);
  EXPECT_EQ(device.memory.used.bytes, (20314 + 633) * kMiB) << "with what the driver keeps";
  EXPECT_EQ(device.memory.free.bytes, (81920 - 20314 - 633) * kMiB);
  EXPECT_EQ(device.utilization_percent.value, 87u);
  EXPECT_EQ(device.memory_utilization_percent.value, 41u);
  EXPECT_EQ(device.temperature_celsius.value, 58u);
  EXPECT_EQ(device.power_milliwatts.value, 311450u);
  EXPECT_EQ(device.mig.value, false);
  ASSERT_EQ(device.processes.value->size(), 2u);
  const AcceleratorProcess& own = (*device.processes.value)[0];
  EXPECT_EQ(own.pid, 4101);
  EXPECT_TRUE(own.here);
  EXPECT_EQ(own.command, "python train.py");
  EXPECT_EQ(own.kind, "compute");
  EXPECT_EQ(own.used.bytes, 17822 * kMiB);
  EXPECT_EQ(own.utilization_percent.value, 85u) << "the later of its two samples";
  EXPECT_FALSE(own.gpu_instance);
  const AcceleratorProcess& other = (*device.processes.value)[1];
  EXPECT_FALSE(other.here);
  EXPECT_EQ(other.not_here_because, "it has ended, or is hidden from this user");
  EXPECT_EQ(other.utilization_percent.absent_because, "no recent sample of this process");
  EXPECT_EQ(used_by(device, 4101).bytes, 17822 * kMiB);
  EXPECT_EQ(used_by(device, 4207).absent_because, "the driver does not list this process");
}

TEST_F(Nvidia, MemoryAloneAsksForNothingElse) {
  const Accelerator device = read("a100-80gb", 3, Depth::kMemory).devices.at(0);
  EXPECT_EQ(device.memory.total.bytes, 81920 * kMiB);
  EXPECT_EQ(device.processes.absent_because, "not requested");
  EXPECT_EQ(device.power_milliwatts.absent_because, "not requested");
}

TEST_F(Nvidia, AnOlderDriverTellsLessAndNothingElse) {
  for (const int generation : {1, 2}) {
    const Accelerator device = read("a100-80gb", generation).devices.at(0);
    EXPECT_EQ(device.memory.total.bytes, 81920 * kMiB);
    EXPECT_EQ(device.memory.used.bytes, (20314 + 633) * kMiB);
    EXPECT_EQ(device.memory.reserved.absent_because, "this driver's NVML is too old");
    ASSERT_EQ(device.processes.value->size(), 2u) << "generation " << generation;
    EXPECT_EQ((*device.processes.value)[1].used.bytes, 2488 * kMiB);
    EXPECT_EQ(device.mig.value, false);
  }
}

TEST_F(Nvidia, ALostGpuKeepsItsPlaceAmongTheOthers) {
  const Accelerators all = read("h100-pair");
  ASSERT_EQ(all.devices.size(), 2u);
  EXPECT_EQ(all.devices[0].memory.used.bytes, 551 * kMiB);
  EXPECT_TRUE(all.devices[0].processes.value->empty());
  const std::string lost = "the GPU has fallen off the bus (NVML: GPU is lost)";
  EXPECT_EQ(all.devices[1].number, 1);
  EXPECT_EQ(all.devices[1].memory.total.absent_because, lost);
  EXPECT_EQ(all.devices[1].name.absent_because, lost);
  EXPECT_EQ(all.devices[1].processes.absent_because, lost);
}

TEST_F(Nvidia, MemoryOfSingleProcessesThatIsNotToldIsNoZero) {
  const Accelerator device = read("h200").devices.at(0);
  ASSERT_EQ(device.processes.value->size(), 2u);
  const AcceleratorProcess& one = (*device.processes.value)[0];
  EXPECT_EQ(one.kind, "mps");
  EXPECT_FALSE(one.used);
  EXPECT_EQ(one.used.absent_because,
            "the driver does not report memory per process here (NVML: not available)");
}

TEST_F(Nvidia, ADeviceThatSharesTheHostsMemoryHasTheHostsFigures) {
  put_process(4101, "Name: python\n", 1);
  const Accelerator device = read("gb10").devices.at(0);
  EXPECT_EQ(device.memory.total.bytes, 1000 * 1024u);
  EXPECT_EQ(device.memory.free.bytes, 400 * 1024u);
  EXPECT_EQ(device.memory.used.bytes, 600 * 1024u);
  EXPECT_EQ(device.memory.source, kHostMemorySource);
  EXPECT_EQ(device.memory.reserved.absent_because,
            "the driver does not report it for this device (NVML: not supported)");
  EXPECT_EQ(device.processes.value->at(0).used.bytes, 30720 * kMiB) << "NVML's own figure";
  EXPECT_EQ(read("a100-80gb").devices.at(0).memory.source, "");
}

TEST_F(Nvidia, WhatThisUserMayNotAskIsSaid) {
  const Accelerator device = read("l40s").devices.at(0);
  EXPECT_EQ(device.memory.total.bytes, 46068 * kMiB);
  EXPECT_EQ(device.processes.absent_because, "this user may not query it (NVML: no permission)");
  EXPECT_EQ(device.power_milliwatts.absent_because,
            "the driver does not report it for this device (NVML: not supported)");
  EXPECT_EQ(device.temperature_celsius.value, 44u);
}

TEST_F(Nvidia, EntriesOf32BytesAreReadAsSuchAndAProcessInTwoListsCountsOnce) {
  const Accelerator device = read("rtx4090").devices.at(0);
  const auto& processes = *device.processes.value;
  ASSERT_EQ(processes.size(), 3u);
  EXPECT_EQ(processes[0].pid, 1180);
  EXPECT_EQ(processes[0].kind, "graphics");
  EXPECT_EQ(processes[1].pid, 2210);
  EXPECT_EQ(processes[1].kind, "compute+graphics");
  EXPECT_EQ(processes[1].used.bytes, 2500 * kMiB);
  EXPECT_EQ(processes[2].pid, 2211);
  EXPECT_EQ(processes[2].used.bytes, 64 * kMiB);
  EXPECT_FALSE(processes[2].gpu_instance);
}

TEST_F(Nvidia, SlicesOfMigHaveMemoryAndProcessesOfTheirOwn) {
  put_process(4101, "Name: python\n", 1);
  const Accelerator device = read("a100-mig").devices.at(0);
  EXPECT_EQ(device.mig.value, true);
  EXPECT_EQ(device.utilization_percent.absent_because,
            "the driver does not report it for this device (NVML: not supported)");
  ASSERT_EQ(device.slices.size(), 2u);
  EXPECT_EQ(device.slices[0].name.value, "NVIDIA A100-SXM4-80GB MIG 3g.40gb");
  EXPECT_EQ(device.slices[0].uuid.value, "MIG-6a1f2bde-6d5c-5a3e-9d4e-5f0b7a2f6c01");
  EXPECT_EQ(device.slices[0].memory.total.bytes, 40192 * kMiB);
  EXPECT_EQ(device.slices[0].memory.used.bytes, 8000 * kMiB);
  EXPECT_EQ(device.slices[1].gpu_instance, 9u);
  const auto& processes = *device.processes.value;
  ASSERT_EQ(processes.size(), 3u) << "a process in two slices stands there twice";
  EXPECT_EQ(processes[0].gpu_instance, 2u);
  EXPECT_EQ(processes[1].gpu_instance, 9u);
  EXPECT_EQ(used_by(device, 4101).bytes, (7936 + 512) * kMiB);
  EXPECT_EQ(used_by(device, 4101, &device.slices[1]).bytes, 512 * kMiB);
}

TEST_F(Nvidia, InAPidNamespaceOfOurOwnANumberMayBeSomebodyElses) {
  see_namespace("pid:[4026532999]");
  put_process(4101, "Name: python\n", 1);
  put("/proc/4101/maps", "7f00-7f10 r-xp 0 08:01 5   /usr/lib/libc.so.6\n");
  auto processes = *read("a100-80gb").devices.at(0).processes.value;
  EXPECT_FALSE(processes[0].here);
  EXPECT_EQ(processes[0].not_here_because,
            "the PID may be the host's: the process with this PID here does not use the driver");
  EXPECT_EQ(processes[0].command, "");
  EXPECT_EQ(processes[1].not_here_because,
            "it runs outside this PID namespace: the PID is the host's");
  put("/proc/4101/maps", "7f00-7f10 r-xp 0 08:01 5   /usr/lib/libcuda.so.550.163.01\n");
  processes = *read("a100-80gb").devices.at(0).processes.value;
  EXPECT_TRUE(processes[0].here);
}

TEST_F(Nvidia, ALibraryThatDoesNotStartIsSaid) {
  put("/board.yaml", "driver: \"1\"\ninit: 18\n");
  const Accelerators all = read(root_ + "/board.yaml");
  EXPECT_TRUE(all.devices.empty());
  ASSERT_EQ(all.notes.size(), 1u);
  EXPECT_EQ(all.notes[0],
            "NVIDIA: NVIDIA's kernel driver and libnvidia-ml.so.1 are of different versions: "
            "restart the machine after a driver update");
}

TEST_F(Nvidia, WithoutNvmlTheKernelsFilesTellNamesAlone) {
  put("/proc/driver/nvidia/gpus/0000:07:00.0/information",
      "Model: \t\t NVIDIA A100-SXM4-80GB\nIRQ:   \t\t 200\nGPU UUID: \t GPU-5c89852c\n"
      "Bus Location: \t 0000:07:00.0\n");
  const Accelerators all = AcceleratorReader({root_, ""}).read(Depth::kEverything);
  ASSERT_EQ(all.devices.size(), 1u);
  EXPECT_EQ(all.devices[0].name.value, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(all.devices[0].uuid.value, "GPU-5c89852c");
  EXPECT_EQ(all.devices[0].source, "/proc/driver/nvidia");
  EXPECT_FALSE(all.devices[0].memory.total);
  EXPECT_EQ(all.notes[0],
            "NVIDIA: NVIDIA's kernel driver is here, but libnvidia-ml.so.1 is not: a container "
            "needs the driver capability \"utility\"");
}

TEST_F(Nvidia, FiguresThatContradictEachOtherAreNone) {
  put("/board.yaml",
      "driver: \"1\"\ndevices:\n  - name: X\n    total_mib: 10\n    reserved_mib: 8\n"
      "    allocated_mib: 5\n");
  const Accelerator device = read(root_ + "/board.yaml").devices.at(0);
  EXPECT_EQ(device.memory.total.absent_because, "the driver's figures contradict each other");
  EXPECT_FALSE(device.memory.used);
}

TEST_F(Nvidia, AMachineWithoutAnyDriverSaysWhatWasLookedFor) {
  const Accelerators all = AcceleratorReader({root_, ""}).read(Depth::kEverything);
  EXPECT_TRUE(all.devices.empty());
  ASSERT_EQ(all.notes.size(), 1u);
  EXPECT_EQ(all.notes[0],
            "no NVIDIA driver (libnvidia-ml.so.1), and no amdgpu, i915 or xe under /sys/class/drm");
}

}  // namespace
}  // namespace gpumemprof

// AMD's and Intel's cards from trees of our own making.
#include <gtest/gtest.h>

#include "devices/accelerators.h"
#include "devices/drm_clients.h"
#include "devices/fake_root.h"

namespace gpumemprof {
namespace {

class Drm : public FakeRoot {
 protected:
  Drm() {
    std::filesystem::create_directories(root_ + "/proc/self/ns");
    std::filesystem::create_symlink("pid:[4026531836]", root_ + "/proc/self/ns/pid");
  }
  Accelerators read(Depth depth = Depth::kEverything) {
    return AcceleratorReader({root_, ""}).read(depth);
  }
  void open_card(int pid, int fd, const std::string& node, const std::string& fdinfo) {
    const std::string folder = "/proc/" + std::to_string(pid);
    const std::string name = std::to_string(fd);
    std::filesystem::create_directories(root_ + folder + "/fd");
    std::filesystem::create_symlink(node, root_ + folder + "/fd/" + name);
    put(folder + "/fdinfo/" + name, fdinfo);
  }
  void put_amd_card() {
    const std::string device = "/sys/class/drm/card1/device";
    put(device + "/uevent",
        "DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:740F\nPCI_SLOT_NAME=0000:03:00.0\n");
    put(device + "/product_name", "AMD Instinct MI210\n");
    put(device + "/unique_id", "8a5c0f3e1b2d4c6e\n");
    put(device + "/mem_info_vram_total", "68702699520\n");
    put(device + "/mem_info_vram_used", "21474836480\n");
    put(device + "/mem_info_gtt_total", "134217728000\n");
    put(device + "/mem_info_gtt_used", "16777216\n");
    put(device + "/gpu_busy_percent", "63\n");
    put(device + "/hwmon/hwmon4/temp1_input", "51000\n");
    put(device + "/hwmon/hwmon4/power1_average", "171000000\n");
    put(device + "/drm/renderD129/dev", "226:129\n");
    put("/sys/class/drm/card1-DP-1/status", "disconnected\n");
    put("/sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n");
    put("/sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 64\n");
    put("/sys/class/kfd/kfd/topology/nodes/1/gpu_id", "15209\n");
    put("/sys/class/kfd/kfd/topology/nodes/1/properties", "simd_count 416\ndrm_render_minor 129\n");
  }
};

constexpr const char* kAmdClient =
    "pos:\t0\nflags:\t02\ndrm-driver:\tamdgpu\ndrm-client-id:\t17\ndrm-pdev:\t0000:03:00.0\n"
    "drm-memory-vram:\t4096 KiB\ndrm-memory-gtt:\t8192 KiB\ndrm-engine-gfx:\t123 ns\n";

TEST_F(Drm, AnAmdCardIsReadWithItsSensors) {
  put_amd_card();
  const Accelerators all = read();
  ASSERT_EQ(all.devices.size(), 1u);
  const Accelerator& device = all.devices[0];
  EXPECT_EQ(device.vendor, "amd");
  EXPECT_EQ(device.name.value, "AMD Instinct MI210");
  EXPECT_EQ(device.uuid.value, "GPU-8a5c0f3e1b2d4c6e");
  EXPECT_EQ(device.pci_bus_id.value, "0000:03:00.0");
  EXPECT_EQ(device.driver_version.absent_because,
            "amdgpu is part of the kernel and has no version of its own");
  EXPECT_EQ(device.memory.total.bytes, 68702699520u);
  EXPECT_EQ(device.memory.used.bytes, 21474836480u);
  EXPECT_EQ(device.memory.free.bytes, 68702699520u - 21474836480u);
  EXPECT_FALSE(device.memory.reserved);
  EXPECT_EQ(device.host_used.bytes, 16777216u);
  EXPECT_EQ(device.utilization_percent.value, 63u);
  EXPECT_EQ(device.memory_utilization_percent.absent_because,
            "the kernel has no mem_busy_percent here");
  EXPECT_EQ(device.temperature_celsius.value, 51u);
  EXPECT_EQ(device.power_milliwatts.value, 171000u);
  EXPECT_TRUE(device.processes.value->empty());
}

TEST_F(Drm, AmdsProcessesAreThoseOfComputeAndThoseThatOpenedTheCard) {
  put_amd_card();
  put_process(700, "Name: python\n", 1);
  put_process(701, "Name: compositor\n", 1);
  put("/sys/class/kfd/kfd/proc/700/vram_15209", "17179869184\n");
  put("/sys/class/kfd/kfd/proc/700/vram_99", "5\n");
  open_card(700, 5, "/dev/dri/renderD129", kAmdClient);
  open_card(701, 3, "/dev/dri/renderD129", kAmdClient);  // handed on: the same client
  std::string own = kAmdClient;
  own.replace(own.find("17"), 2, "18");
  open_card(701, 4, "/dev/dri/card1", own);
  open_card(701, 6, "/tmp/file", own);
  const Accelerator device = read().devices.at(0);
  const auto& processes = *device.processes.value;
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_EQ(processes[0].pid, 700);
  EXPECT_EQ(processes[0].kind, "compute");
  EXPECT_EQ(processes[0].used.bytes, 17179869184u) << "KFD's figure, which has the most";
  EXPECT_EQ(processes[1].pid, 701);
  EXPECT_EQ(processes[1].kind, "graphics");
  EXPECT_EQ(processes[1].used.bytes, 4096u * 1024) << "of its own client alone";
  EXPECT_EQ(read(Depth::kMemory).devices.at(0).processes.absent_because, "not requested");
}

TEST_F(Drm, InAContainerADescriptorTellsWhoseItIsAndKfdsNumberDoesNot) {
  std::filesystem::remove(root_ + "/proc/self/ns/pid");
  std::filesystem::create_symlink("pid:[4026532999]", root_ + "/proc/self/ns/pid");
  put_amd_card();
  put_process(700, "Name: other\n", 1);
  put_process(701, "Name: python\n", 1);
  put("/sys/class/kfd/kfd/proc/700/vram_15209", "4096\n");
  open_card(701, 3, "/dev/dri/renderD129", kAmdClient);
  const Accelerator device = read().devices.at(0);
  const auto& processes = *device.processes.value;
  ASSERT_EQ(processes.size(), 2u);
  EXPECT_FALSE(processes[0].here);
  EXPECT_TRUE(processes[1].here);
  EXPECT_EQ(processes[1].command, "python train.py");
}

TEST_F(Drm, AFileThatTheKernelDoesNotHaveIsAReason) {
  put("/sys/class/drm/card0/device/uevent", "DRIVER=amdgpu\nPCI_ID=1002:164E\n");
  const Accelerator device = read().devices.at(0);
  EXPECT_EQ(device.name.absent_because, "the kernel has no name, only the PCI ID 1002:164E");
  EXPECT_EQ(device.pci_bus_id.absent_because, "the card is not on a PCI bus");
  EXPECT_EQ(device.memory.total.absent_because, "the kernel has no mem_info_vram_total here");
  EXPECT_EQ(device.memory.free.absent_because, "total and used memory are not both known");
}

TEST_F(Drm, AnIntelCardTellsItsTotalAndWhatProcessesHave) {
  const std::string device = "/sys/class/drm/card0/device";
  put(device + "/uevent", "DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:04:00.0\n");
  put(device + "/tile0/physical_vram_size_bytes", "12884901888\n");
  put(device + "/tile1/memory/physical_vram_size_bytes", "4096\n");
  put_process(55, "Name: python\n", 1);
  open_card(55, 9, "/dev/dri/renderD128",
            "drm-driver:\txe\ndrm-client-id:\t4\ndrm-pdev:\t0000:04:00.0\n"
            "drm-total-system:\t1 MiB\ndrm-total-vram0:\t300 MiB\ndrm-resident-vram0:\t256 MiB\n"
            "drm-total-vram1:\t12 KiB\n");
  const Accelerator card = read().devices.at(0);
  EXPECT_EQ(card.vendor, "intel");
  EXPECT_EQ(card.memory.total.bytes, 12884901888u + 4096);
  EXPECT_EQ(card.memory.used.absent_because,
            "the kernel does not report it: xe has it only in its own ioctl");
  ASSERT_EQ(card.processes.value->size(), 1u);
  EXPECT_EQ((*card.processes.value)[0].used.bytes, 256u * (1 << 20) + 12 * 1024)
      << "what is resident, and where that is not told all that was asked for";
}

TEST_F(Drm, AGpuInsideAProcessorHasNoMemoryOfItsOwn) {
  put("/sys/class/drm/card0/device/uevent",
      "DRIVER=i915\nPCI_ID=8086:46A6\nPCI_SLOT_NAME=0000:00:02.0\n");
  open_card(56, 9, "/dev/dri/card0",
            "drm-driver: i915\ndrm-client-id: 4\ndrm-pdev: 0000:00:02.0\n"
            "drm-total-system0: 1 MiB\n");
  const Accelerator card = read().devices.at(0);
  EXPECT_FALSE(card.memory.total);
  EXPECT_EQ((*card.processes.value)[0].used.absent_because,
            "the process has no memory on the card, or the kernel is too old");
  put("/sys/class/drm/card0/lmem_total_bytes", "17179869184\n");
  EXPECT_EQ(read().devices.at(0).memory.total.bytes, 17179869184u);
}

TEST_F(Drm, ATextThatIsNoClientsOrHasWildNumbersIsNothing) {
  DrmClient client;
  EXPECT_FALSE(parse_drm_client("", &client));
  EXPECT_FALSE(parse_drm_client("drm-driver:\tamdgpu\n", &client)) << "no identifier";
  EXPECT_FALSE(parse_drm_client("pos: 0\ndrm-client-id: 3\n", &client)) << "no driver";
  EXPECT_TRUE(
      parse_drm_client("drm-driver: x\ndrm-client-id: 3\n"
                       "drm-memory-vram: 99999999999999999999 KiB\n"
                       "drm-memory-gtt: 18446744073709551615 KiB\ndrm-memory-a: -1\n"
                       "drm-memory-b:\ndrm-memory-c: 7\n",
                       &client));
  EXPECT_EQ(client.regions, (std::map<std::string, uint64_t>{{"c", 7}}));
}

}  // namespace
}  // namespace gpumemprof

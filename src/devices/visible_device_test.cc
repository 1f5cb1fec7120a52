// Which accelerator "cuda:0" is, and where that cannot be told.
#include "devices/visible_device.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

Accelerator gpu(const std::string& name, const std::string& uuid, std::vector<int> pids = {}) {
  Accelerator out{.vendor = "nvidia"};
  out.name = Known<std::string>::of(name);
  out.uuid = Known<std::string>::of(uuid);
  out.mig = Known<bool>::of(false);
  out.processes = Known<std::vector<AcceleratorProcess>>::of({});
  for (const int pid : pids) out.processes.value->push_back({.pid = pid, .here = true});
  return out;
}

TEST(VisibleDevice, TheOnlyOneIsIt) {
  const Accelerators all{.devices = {gpu("A", "GPU-1")}};
  EXPECT_EQ(match_device(all, {}, 5, 0).device, 0u);
  EXPECT_EQ(match_device(all, {}, 5, 1).why_not, "there are fewer devices here");
}

TEST(VisibleDevice, TheOneOnWhichTheDriverListsTheProcessIsIt) {
  const Accelerators all{.devices = {gpu("A", "GPU-1", {9}), gpu("B", "GPU-2", {5})}};
  EXPECT_EQ(match_device(all, {}, 5, 0).device, 1u);
}

TEST(VisibleDevice, OfSeveralTheEnvironmentTellsWhereNoListContradicts) {
  Accelerators all{.devices = {gpu("A", "GPU-aa1"), gpu("A", "GPU-bb2"), gpu("A", "GPU-cc3")}};
  EXPECT_EQ(match_device(all, {.cuda = "2,0"}, 5, 0).device, 2u);
  EXPECT_EQ(match_device(all, {.cuda = "2,0"}, 5, 1).device, 0u);
  EXPECT_EQ(match_device(all, {.cuda = "GPU-bb2"}, 5, 0).device, 1u);
  EXPECT_EQ(match_device(all, {.cuda = "GPU-bb"}, 5, 0).device, 1u);
  EXPECT_EQ(match_device(all, {.cuda = "1"}, 5, 1).why_not,
            "the program's environment hides devices from it");
  EXPECT_EQ(match_device(all, {}, 5, 0).why_not,
            "there are 3 GPUs, and the driver lists the process on none of them");
  all.devices[0] = gpu("A", "GPU-aa1", {5}), all.devices[2] = gpu("A", "GPU-cc3", {5});
  EXPECT_EQ(match_device(all, {}, 5, 0).device, 0u);
  EXPECT_EQ(match_device(all, {.cuda = "1,2"}, 5, 0).why_not,
            "the driver lists the process on devices that its environment does not name");
}

TEST(VisibleDevice, ThatTheFastestComesFirstIsNoOrder) {
  const Accelerators all{.devices = {gpu("A", "GPU-1"), gpu("B", "GPU-2")}};
  EXPECT_EQ(match_device(all, {.cuda = "0"}, 5, 0).why_not,
            "there are several kinds of GPUs; their order in CUDA is unknown");
  EXPECT_EQ(match_device(all, {.cuda = "1", .pci_order = true}, 5, 0).device, 1u);
}

TEST(VisibleDevice, ASliceIsFoundByItsNameOrByTheProcess) {
  Accelerators all{.devices = {gpu("A", "GPU-1")}};
  Accelerator& device = all.devices[0];
  device.mig = Known<bool>::of(true);
  for (unsigned i = 0; i < 2; ++i) {
    AcceleratorSlice slice{.index = i, .gpu_instance = 4 + i, .compute_instance = 0};
    slice.uuid = Known<std::string>::of("MIG-" + std::to_string(i));
    slice.memory.total = Quantity::of(100 + i);
    device.slices.push_back(slice);
  }
  EXPECT_EQ(match_device(all, {}, 5, 0).why_not, "MIG divides the device; the slice is unknown");
  const MatchedDevice named = match_device(all, {.cuda = "MIG-1"}, 5, 0);
  EXPECT_EQ(named.slice, 1u);
  EXPECT_EQ(matched_memory(all, named).total.bytes, 101u);
  device.processes.value->push_back(
      {.pid = 5, .here = true, .gpu_instance = 4, .compute_instance = 0});
  EXPECT_EQ(match_device(all, {}, 5, 0).slice, 0u);
}

TEST(VisibleDevice, AProgramThatAsksForItselfGoesByTheUuidElseByItsEnvironment) {
  const Accelerators all{.devices = {gpu("A", "GPU-aa", {5}), gpu("A", "GPU-bb")}};
  EXPECT_EQ(match_own_device(all, {}, 1, std::nullopt).device, 1u) << "whatever is listed";
  EXPECT_EQ(match_own_device(all, {.cuda = "1"}, 0, std::nullopt).device, 1u);
  EXPECT_EQ(match_own_device(all, {.cuda = "1"}, 0, "aa").device, 0u);
  EXPECT_EQ(match_own_device(all, {}, 0, "GPU-cc").why_not,
            "the driver lists no device with the UUID from CUDA");
}

TEST(VisibleDevice, WithoutADriverItIsWhatWasSaidOfTheMachine) {
  EXPECT_EQ(match_device({.notes = {"nobody is here"}}, {}, 5, 0).why_not, "nobody is here");
}

TEST(VisibleDevice, TheEnvironmentIsReadBetweenItsNuls) {
  const std::string text("A=1\0CUDA_VISIBLE_DEVICES=1,2\0CUDA_DEVICE_ORDER=PCI_BUS_ID\0", 58);
  const VisibleDevices visible = VisibleDevices::of_environment(text);
  EXPECT_EQ(visible.cuda, "1,2");
  EXPECT_TRUE(visible.pci_order);
  EXPECT_FALSE(visible.rocm);
}

}  // namespace
}  // namespace gpumemprof

#include "picture/accelerators.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

Accelerator board() {
  Accelerator device;
  device.number = 2, device.vendor = "nvidia";
  device.name = Known<std::string>::of("NVIDIA H200");
  device.uuid = Known<std::string>::absent("the driver refuses");
  device.memory.total = Quantity::of(1000), device.memory.used = Quantity::of(300);
  device.memory.free = Quantity::absent("not told");
  return device;
}

AcceleratorProcess process(int pid, bool here, Quantity used) {
  AcceleratorProcess one;
  one.pid = pid, one.here = here, one.used = std::move(used);
  return one;
}

TEST(PictureAccelerators, AreCalledByVendorAndTheDriversNumber) {
  Accelerators said;
  said.devices.push_back(board());
  const PictureAccelerators out = in_a_picture(said);
  ASSERT_EQ(out.devices.size(), 1u);
  EXPECT_EQ(out.absent_because, "");
  EXPECT_EQ(out.devices[0].name, "nvidia:2");
  EXPECT_EQ(out.devices[0].model, "NVIDIA H200");
  EXPECT_EQ(out.devices[0].uuid, "");
  EXPECT_EQ(out.devices[0].used.bytes, 300u);
  EXPECT_EQ(out.devices[0].free.absent_because, "not told");
}

TEST(PictureAccelerators, AProcessIsCountedOnlyWhereItIsSeenAndItsBytesAreTold) {
  Accelerators said;
  said.devices.push_back(board());
  said.devices[0].processes = Known<std::vector<AcceleratorProcess>>::of(
      {process(7, true, Quantity::of(40)), process(7, true, Quantity::of(2)),
       process(8, false, Quantity::of(50)), process(9, true, Quantity::absent("not available"))});
  EXPECT_EQ(in_a_picture(said).devices[0].by_pid, (std::map<int, uint64_t>{{7, 42}}));
}

TEST(PictureAccelerators, WithoutADeviceTheReasonIsTold) {
  EXPECT_EQ(in_a_picture({}).absent_because, "no accelerator was found");
  EXPECT_EQ(in_a_picture({{}, {"no driver answers", "and no file"}}).absent_because,
            "no driver answers");
}

}  // namespace
}  // namespace gpumemprof

// The one place where what a device says of itself comes into a live picture.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "devices/accelerators.h"

namespace gpumemprof {

/// One accelerator of this machine as its driver sees it: all processes together.
struct PictureAccelerator {
  std::string name;                    ///< "nvidia:0": the vendor and the driver's own number
  std::string model, uuid;             ///< empty where not told
  std::string vendor, driver_version;  ///< empty where not told
  Quantity total, used, free;          ///< bytes of its memory
  Known<uint64_t> utilization_percent;
  std::map<int, uint64_t> by_pid;  ///< bytes a process that we see holds, where the driver tells
};

struct PictureAccelerators {
  std::vector<PictureAccelerator> devices;
  std::string absent_because;  ///< why there are none in `devices`; empty where there are
};

/// What the drivers said, in the words of a picture. Metrics, page and terminal view show what
/// comes from here and ask nobody else.
PictureAccelerators in_a_picture(const Accelerators& said);

/// Where a Camera asks: the whole system, or the files below a test's `root` alone.
DeviceRoot device_root_of(const std::string& root);

}  // namespace gpumemprof

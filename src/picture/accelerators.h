// Where what devices and the kernel say of themselves comes into a live picture.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "analysis/host/host_identity.h"
#include "devices/accelerators.h"
#include "devices/cgroup_memory.h"
#include "devices/process_memory.h"

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

// What the kernel says now of host memory, as the sums that reports show.

HostTerm host_term(const Quantity& quantity);
/// `may_pin`: the process has a GPU open, or it may not be seen whether it has. Else nothing is pinned.
HostMoment host_moment(const ProcessMemory& memory, bool may_pin, uint64_t time_ns);
CgroupMoment cgroup_moment(const HostMemory& host, uint64_t time_ns);

}  // namespace gpumemprof

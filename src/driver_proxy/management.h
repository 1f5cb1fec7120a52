// A device's used memory before there is a context through which the driver can be asked.
#pragma once

#include <stdint.h>

namespace gpumemprof::driver_proxy {

/// By NVML, which is opened for this and shut down after it. False if it is not installed, does not
/// know the device or does not answer.
bool used_by_management(int device, uint64_t* bytes);

}  // namespace gpumemprof::driver_proxy

// What a device has in use before there is a context in which the driver could be asked.
#pragma once

#include <stdint.h>

namespace gpumemprof::driver_proxy {

/// By NVML, which is opened for this and told that we are done after it. False where it is not
/// installed, does not know the device or does not tell.
bool used_by_management(int device, uint64_t* bytes);

}  // namespace gpumemprof::driver_proxy

// How the memory of a device and of the host adds up.
#pragma once

#include <string>

#include "analysis/driver/driver_memories.h"
#include "analysis/host/host_identity.h"
#include "report/document.h"

namespace gpumemprof {

/// What is used = what it is made of, a row each. What is unknown says why. Of more than
/// `most_libraries` the rest is one row.
Table identity_table(const DriverMoment& moment, const DeviceIdentity& sum,
                     size_t most_libraries = 12);

/// The host's memory in words.
/// "host memory, 1.20 GiB resident: pinned 0 B, shared 12.0 MiB, files 300 MiB, the rest 900 MiB":
/// what is unknown is in the rest. Empty where the resident memory is unknown.
std::string host_sum_text(const HostMoment& moment);

}  // namespace gpumemprof

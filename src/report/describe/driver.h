// How the memory of a device adds up, by what its driver handed out.
#pragma once

#include "analysis/driver/driver_memories.h"
#include "report/document.h"

namespace gpumemprof {

/// What is used = what it is made of, a row each. What is unknown says why. Of more than
/// `most_libraries` the rest is one row.
Table identity_table(const DriverMoment& moment, const DeviceIdentity& sum,
                     size_t most_libraries = 12);

}  // namespace gpumemprof

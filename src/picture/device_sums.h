// A recorded process's memory of the driver, held against what the driver says of everybody's.
#pragma once

#include <optional>
#include <vector>

#include "devices/accelerators.h"
#include "picture/picture.h"

namespace gpumemprof {

/// A sum for each device of `driver`, which may be null. `pid` as this machine counts; nothing
/// where the process is not visible from here. A device is found among the drivers' by its place
/// on the bus, or where the process has but one on both sides. `time_ns`: when `said` was asked.
std::vector<PictureSum> device_sums(const DriverMemories* driver, const Accelerators& said,
                                    std::optional<int> pid, uint64_t time_ns);

}  // namespace gpumemprof

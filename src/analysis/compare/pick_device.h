// Which device of a source a question is about, where it is about one.
#pragma once

#include <string_view>

#include "analysis/analysis.h"
#include "base/error.h"

namespace gpumemprof {

/// `name` is "cpu", "cuda:1" or, for one process of several, "PID/cuda:1"; of several devices that
/// fit, the one with the highest peak. An empty name gives main_device(), which may be null:
/// nothing was allocated. Errors: kUsage where no device fits; the message lists those there are.
Result<const DeviceAnalysis*> pick_device(const Analysis& analysis, const Tables& tables,
                                          std::string_view name);

/// Whether another process of the recording started its process, as a DataLoader's workers are.
bool is_of_worker(const DeviceAnalysis& device, const Tables& tables);

/// The main device of another run whose process has the same role, the program's own or a worker's;
/// null where none has.
const DeviceAnalysis* main_device_of_role(const Analysis& analysis, const Tables& tables,
                                          bool is_worker);

}  // namespace gpumemprof

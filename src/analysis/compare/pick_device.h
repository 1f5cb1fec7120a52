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

}  // namespace gpumemprof

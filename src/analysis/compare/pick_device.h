// Which device of a source a question is about, where it is about one.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/analysis.h"
#include "base/error.h"

namespace gpumemprof {

/// `name` is "cpu", "cuda:1" or, for one process of several, "PID/cuda:1" or "rank 1/cuda:1"; of
/// several devices that fit, the one with the highest peak. An empty name gives main_device(), which
/// may be null: nothing was allocated. Errors: kUsage where no device fits; the message lists those
/// there are.
Result<const DeviceAnalysis*> pick_device(const Analysis& analysis, const Tables& tables,
                                          std::string_view name);

/// What a device's process is in its run.
struct ProcessRole {
  bool is_worker = false;  ///< another process of the recording started it, as a DataLoader's
  std::optional<uint32_t> rank;
};
ProcessRole role_of(const DeviceAnalysis& device, const Tables& tables);
/// Ranks are of one role where either is unknown.
bool is_same_role(const ProcessRole& a, const ProcessRole& b);

/// The main device of another run whose process has the role; null where none has.
const DeviceAnalysis* main_device_of_role(const Analysis& analysis, const Tables& tables,
                                          const ProcessRole& role);

}  // namespace gpumemprof

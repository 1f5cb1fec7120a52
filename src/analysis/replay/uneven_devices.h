// Devices that run the same lines with blocks of very different sizes.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/analysis.h"
#include "trace/tables.h"

namespace gpumemprof {

/// What a line holds on a device, beside the same line on the device that comes closest to it.
struct UnevenLine {
  uint32_t node = 0;          ///< of the line
  uint16_t other_device = 0;  ///< index in Tables::devices
  uint64_t mean_bytes = 0, other_mean_bytes = 0;  ///< of a block, at each device's peak

  double times() const {
    return static_cast<double>(mean_bytes) / static_cast<double>(other_mean_bytes);
  }
};

inline constexpr uint64_t kUnevenTimes = 2;

/// The line with most bytes at the peak of `device`, if the lines whose blocks are kUnevenTimes as
/// large or more there as on every other device of its process and type that has them hold half of
/// that peak.
std::optional<UnevenLine> uneven_line(const Analysis& analysis, const Tables& tables,
                                      const DeviceAnalysis& device);

}  // namespace gpumemprof

#include "analysis/device_truth.h"

namespace gpumemprof {

/// The one place to change where recordings come to hold samples of devices.
std::optional<DeviceTruth> recorded_device_truth(const Tables&, uint32_t, int8_t, uint64_t) {
  return std::nullopt;
}

}  // namespace gpumemprof

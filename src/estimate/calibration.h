// What `gpumemprof calibrate` measured on a GPU, for estimates to use in place of the table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace gpumemprof {

struct Calibration {
  std::string device, driver, torch, cuda;  ///< names and versions of what was measured
  std::string basis;  ///< "process": the driver's figure of it; "device": what the device had more
  uint64_t context_bytes = 0, cublas_bytes = 0, cudnn_bytes = 0;  ///< outside of the allocator
  uint64_t product_workspace_bytes = 0;  ///< of cuBLAS, a handle, from the allocator
  uint64_t multiprocessors = 0;          ///< of the GPU; 0: the file does not say
  /// What a process has of the device besides what the allocator reserves.
  uint64_t device_constant_bytes() const { return context_bytes + cublas_bytes + cudnn_bytes; }
};

inline constexpr size_t kMaxCalibrationBytes = 1 << 16;

/// Errors: kBadInput with the byte where it is not JSON, without one where it is none of ours;
/// kUnsupported for a later major version.
Result<Calibration> parse_calibration(std::string_view text);

/// "measured by calibrate on NVIDIA H200, PyTorch 2.13.0, CUDA 13.0".
std::string calibration_source(const Calibration& calibration);

}  // namespace gpumemprof

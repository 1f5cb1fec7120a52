// Which processes use an NVIDIA GPU, and how much of it.
#pragma once

#include <vector>

#include "devices/accelerator.h"
#include "devices/nvml_library.h"
#include "devices/process_place.h"

namespace gpumemprof {

/// By PID, one entry a process and slice. Where MIG divides the device its slices are asked, since
/// the whole device's list is for administrators only; `slices` and `handles` are of one length.
/// Absent where every list is refused.
Known<std::vector<AcceleratorProcess>> nvidia_processes(const NvmlLibrary& lib, nvml::Device device,
                                                        const std::vector<AcceleratorSlice>& slices,
                                                        const std::vector<nvml::Device>& handles,
                                                        const ProcessPlace& place);

}  // namespace gpumemprof

// What is said of a machine that has no driver of a GPU, by who looks for one and who reads it in a
// recording.
#pragma once

namespace gpumemprof {

inline constexpr const char* kNoGpuDriverHere =
    "no NVIDIA driver (libnvidia-ml.so.1), and no amdgpu, i915 or xe under /sys/class/drm";

}  // namespace gpumemprof

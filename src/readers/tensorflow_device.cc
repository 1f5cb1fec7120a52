#include "readers/tensorflow_device.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostDeviceName = 64;  // as in recordings

/// "GPU_0_bfc", "gpu_async_1": the number behind `start`; -1 where it is another name.
int ordinal_after(std::string_view name, std::string_view start) {
  if (!name.starts_with(start)) return -1;
  int number = -1;
  for (char c : name.substr(start.size())) {
    if (c < '0' || c > '9' || number >= 12) break;
    number = (number < 0 ? 0 : number * 10) + (c - '0');
  }
  return number;
}

}  // namespace

Device tensorflow_device(std::string_view name) {
  const auto holds = [&](std::string_view word) { return name.find(word) != name.npos; };
  Device device{.type = kTensorflowOther, .layer = Layer::kAllocator};
  int gpu = ordinal_after(name, "GPU_");
  if (gpu < 0) gpu = ordinal_after(name, "gpu_async_");
  if (gpu >= 0) {
    device.type = kTensorflowGpu;
    device.index = static_cast<int8_t>(gpu);
  } else if (holds("cpu") || holds("host")) {
    device.type = kTensorflowCpu;
    device.index = 0;
  }
  device.name = plain_device_name(name.substr(0, kMostDeviceName));
  return device;
}

}  // namespace gpumemprof

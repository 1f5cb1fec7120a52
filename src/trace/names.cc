#include "trace/event.h"
#include "trace/tables.h"

namespace gpumemprof {

const char* action_name(Action action) {
  switch (action) {
    case Action::kAlloc:
      return "alloc";
    case Action::kFreeRequested:
      return "free_requested";
    case Action::kFreeCompleted:
      return "free_completed";
    case Action::kOom:
      return "oom";
    case Action::kSegmentAlloc:
      return "segment_alloc";
    case Action::kSegmentFree:
      return "segment_free";
    case Action::kSegmentMap:
      return "segment_map";
    case Action::kSegmentUnmap:
      return "segment_unmap";
    case Action::kSnapshot:
      return "snapshot";
  }
  return "unknown";
}

const char* layer_name(Layer layer) {
  switch (layer) {
    case Layer::kHost:
      return "host";
    case Layer::kFramework:
      return "framework";
    case Layer::kAllocator:
      return "allocator";
    case Layer::kDriver:
      return "driver";
  }
  return "unknown";
}

// c10::DeviceType, frozen numbers (c10/core/DeviceType.h).
const char* backend_name(const Device& device) {
  switch (device.type) {
    case 0:
      return "CPU";
    case 1:
      return "CUDA";
    case 6:
      return "HIP";
    case 9:
      return "XLA";
    case 12:
      return "XPU";
    case 13:
      return "MPS";
    case 14:
      return "Meta";
    case 15:
      return "HPU";
    case 19:
      return "MTIA";
    case 20:
      return "PrivateUse1";
    case kTensorflowCpu:
    case kJaxCpu:
      return "CPU";
    case kTensorflowGpu:
      return "GPU";
    default:
      return "unknown";
  }
}

const char* launcher_name(Launcher launcher) {
  switch (launcher) {
    case Launcher::kTorchrun:
      return "torchrun";
    case Launcher::kOpenMpi:
      return "Open MPI";
    case Launcher::kPmi:
      return "PMI";
    case Launcher::kSlurm:
      return "Slurm";
    case Launcher::kOwnGroup:
      return "the program";
    default:
      return "";
  }
}

std::string plain_device_name(std::string_view name) {
  constexpr std::string_view kMarks = " _-.:/+";
  std::string plain(name);
  for (char& c : plain) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_letter && !(c >= '0' && c <= '9') && kMarks.find(c) == kMarks.npos) c = '?';
  }
  return plain;
}

const char* framework_name(const Device& device) {
  if (is_host_blocks(device)) return "host";
  if (is_jax(device)) return "jax";
  return is_tensorflow(device) ? "tensorflow" : "pytorch";
}

std::string device_name(const Device& device) {
  if (is_tensorflow(device)) {
    return "tensorflow:" + (device.name.empty() ? "unnamed allocator" : device.name);
  }
  if (is_host_blocks(device)) return "host " + (device.name.empty() ? "blocks" : device.name);
  if (is_jax(device)) return "jax:" + (device.name.empty() ? "cpu" : device.name);
  if (device.type == 0 && is_driver_memory(device)) return "cpu " + device.name;
  if (device.type == 0) return device.layer == Layer::kHost ? "shared memory" : "cpu";
  std::string name;
  for (const char* c = backend_name(device); *c; ++c) name += static_cast<char>(*c | 0x20);
  if (name == "unknown") name = "device type " + std::to_string(device.type);
  if (device.index >= 0) name += ':' + std::to_string(device.index);
  return is_driver_memory(device) ? name + ' ' + device.name : name;
}

}  // namespace gpumemprof

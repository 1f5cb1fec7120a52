#include "devices/nvml_library.h"

#include <dlfcn.h>

#include <initializer_list>

namespace gpumemprof {
namespace {

/// The first of the names that the library has.
template <class Function>
bool find(void* library, Function* function, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* address = dlsym(library, name)) {
      *function = reinterpret_cast<Function>(address);
      return true;
    }
  }
  return false;
}

/// The newest version of one list, with the size of what it writes.
void find_list(void* library, const char* kind, const std::string& name, NvmlLibrary* out) {
  NvmlLibrary::ProcessList list{.kind = kind};
  for (const auto& [version, bytes] :
       {std::pair{"_v3", sizeof(nvml::ProcessV2)}, std::pair{"_v2", sizeof(nvml::ProcessV2)},
        std::pair{"", sizeof(nvml::ProcessV1)}}) {
    if (!find(library, &list.list, {(name + version).c_str()})) continue;
    list.entry_bytes = bytes;
    out->process_lists.push_back(list);
    return;
  }
}

}  // namespace

Result<std::unique_ptr<NvmlLibrary>> NvmlLibrary::open(const std::string& path) {
  // An empty name is the program itself to dlopen.
  void* library = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return fail(ErrorCode::kNotFound, "libnvidia-ml.so.1 cannot be opened: no NVIDIA driver here");
  nvml::Return (*init)() = nullptr;
  auto out = std::make_unique<NvmlLibrary>();
  NvmlLibrary& l = *out;
  if (!find(library, &init, {"nvmlInit_v2"}) ||
      !find(library, &l.device_count, {"nvmlDeviceGetCount_v2"}) ||
      !find(library, &l.device_by_index, {"nvmlDeviceGetHandleByIndex_v2"}))
    return fail(ErrorCode::kSystem, "libnvidia-ml.so.1 has no nvmlInit_v2: unknown NVML");
  nvml::Return (*shutdown)() = nullptr;
  find(library, &shutdown, {"nvmlShutdown"});
  find(library, &l.error_text_, {"nvmlErrorString"});
  find(library, &l.driver_version, {"nvmlSystemGetDriverVersion"});
  find(library, &l.name, {"nvmlDeviceGetName"});
  find(library, &l.uuid, {"nvmlDeviceGetUUID"});
  find(library, &l.pci_info, {"nvmlDeviceGetPciInfo_v3"});
  find(library, &l.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  find(library, &l.memory, {"nvmlDeviceGetMemoryInfo"});
  find(library, &l.utilization, {"nvmlDeviceGetUtilizationRates"});
  find(library, &l.temperature, {"nvmlDeviceGetTemperature"});
  find(library, &l.power, {"nvmlDeviceGetPowerUsage"});
  find(library, &l.mig_mode, {"nvmlDeviceGetMigMode"});
  find(library, &l.mig_count, {"nvmlDeviceGetMaxMigDeviceCount"});
  find(library, &l.mig_device, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  find(library, &l.gpu_instance, {"nvmlDeviceGetGpuInstanceId"});
  find(library, &l.compute_instance, {"nvmlDeviceGetComputeInstanceId"});
  find(library, &l.process_utilization, {"nvmlDeviceGetProcessUtilization"});
  find_list(library, "compute", "nvmlDeviceGetComputeRunningProcesses", out.get());
  find_list(library, "graphics", "nvmlDeviceGetGraphicsRunningProcesses", out.get());
  find_list(library, "mps", "nvmlDeviceGetMPSComputeRunningProcesses", out.get());
  if (const nvml::Return code = init(); code != nvml::kSuccess)
    return fail(ErrorCode::kSystem, l.reason(code));
  l.shutdown_ = shutdown;
  return out;
}

NvmlLibrary::~NvmlLibrary() {
  if (shutdown_ != nullptr) shutdown_();
}

std::string NvmlLibrary::reason(nvml::Return code) const {
  switch (code) {
    case nvml::kNotSupported:
      return "the driver does not report it for this device (NVML: not supported)";
    case nvml::kNoPermission:
      return "this user may not query it (NVML: no permission)";
    case nvml::kDriverNotLoaded:
      return "NVIDIA's kernel driver is not loaded";
    case nvml::kLibraryMismatch:
      return "NVIDIA's kernel driver and libnvidia-ml.so.1 are of different versions: restart the "
             "machine after a driver update";
    case nvml::kGpuIsLost:
      return "the GPU has fallen off the bus (NVML: GPU is lost)";
    case nvml::kResetRequired:
      return "the GPU needs a reset (NVML: reset required)";
    default:
      break;
  }
  const char* text = error_text_ != nullptr ? error_text_(code) : nullptr;
  std::string why = "NVML error " + std::to_string(code);
  if (text != nullptr && *text) why += std::string(": ") + text;
  return why.substr(0, 200);
}

}  // namespace gpumemprof

// NVIDIA's GPUs through NVML; where the kernel driver is there and NVML is not, as in a container
// without it, their names alone from /proc/driver/nvidia.

#include <algorithm>
#include <cstring>

#include "base/folder.h"
#include "devices/accelerators.h"
#include "devices/host_memory.h"
#include "devices/nvidia_processes.h"
#include "devices/nvml_library.h"
#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

constexpr unsigned kMostDevices = 256, kMostSlices = 64;

/// A text of the driver's; `call` fills a buffer of nvml::kTextBytes.
template <class Call>
Known<std::string> text_of(const NvmlLibrary& lib, bool has, Call call) {
  if (!has) return Known<std::string>::absent(kNvmlTooOld);
  char text[nvml::kTextBytes + 1] = {};
  const nvml::Return code = call(text, unsigned{nvml::kTextBytes});
  if (code != nvml::kSuccess) return Known<std::string>::absent(lib.reason(code));
  return Known<std::string>::of({text, strnlen(text, nvml::kTextBytes)});
}

/// A number of the driver's; `call` fills an unsigned.
template <class Call>
Known<uint64_t> number_of(const NvmlLibrary& lib, bool has, Call call) {
  if (!has) return Known<uint64_t>::absent(kNvmlTooOld);
  unsigned value = 0;
  const nvml::Return code = call(&value);
  return code == nvml::kSuccess ? Known<uint64_t>::of(value)
                                : Known<uint64_t>::absent(lib.reason(code));
}

DeviceMemory absent_memory(const std::string& why) {
  const Quantity none = Quantity::absent(why);
  return {none, none, none, none, {}};
}

/// "used" is total - free: in version 1 it is so by definition, and drivers do not agree on whether
/// version 2's own figure includes what is reserved.
DeviceMemory memory_of(uint64_t total, uint64_t free) {
  if (free > total) return absent_memory("the driver's figures contradict each other");
  return {Quantity::of(total), Quantity::of(total - free), Quantity::of(free), {}, {}};
}

/// What a device without memory of its own can have: the kernel's estimate counts page cache as free,
/// CUDA's own figure does not.
DeviceMemory host_memory(const std::string& root, const std::string& why) {
  const HostMemory host = read_host_memory(root);
  return {host.total, host.used, host.available, Quantity::absent(why), kHostMemorySource};
}

DeviceMemory read_memory(const NvmlLibrary& lib, nvml::Device device, const std::string& root) {
  nvml::Return code = nvml::kFunctionNotFound;
  if (lib.memory_v2 != nullptr) {
    nvml::MemoryV2 memory{.version = nvml::kMemoryV2};
    code = lib.memory_v2(device, &memory);
    if (code == nvml::kSuccess) {
      DeviceMemory out = memory_of(memory.total, memory.free);
      out.reserved = !out.used ? out.used
                     : memory.reserved <= *out.used.bytes
                         ? Quantity::of(memory.reserved)
                         : Quantity::absent("the driver's figures contradict each other");
      return out;
    }
  }
  nvml::Memory memory{};
  const nvml::Return first = lib.memory != nullptr ? lib.memory(device, &memory) : code;
  if (first == nvml::kNotSupported) return host_memory(root, lib.reason(first));
  if (first != nvml::kSuccess)
    return absent_memory(first == nvml::kFunctionNotFound ? kNvmlTooOld : lib.reason(first));
  DeviceMemory out = memory_of(memory.total, memory.free);
  if (out.used) out.reserved = Quantity::absent(kNvmlTooOld);
  return out;
}

class Nvidia : public AcceleratorSource {
 public:
  explicit Nvidia(DeviceRoot root) : root_(std::move(root)) {}

  void add(Depth depth, const ProcessPlace& place, Accelerators* out) override {
    open();
    if (!library_) {
      add_names_alone(out);
      return;
    }
    unsigned count = 0;
    if (const nvml::Return code = library_->device_count(&count); code != nvml::kSuccess) {
      out->notes.push_back("NVIDIA: " + library_->reason(code));
      return;
    }
    for (unsigned i = 0; i < std::min(count, kMostDevices); ++i)
      out->devices.push_back(read_device(i, depth, place));
  }

 private:
  void open() {
    if (tried_) return;
    tried_ = true;
    auto library = NvmlLibrary::open(root_.nvml);
    if (library)
      library_ = std::move(*library);
    else
      failure_ = library.error();
  }

  Accelerator read_device(unsigned index, Depth depth, const ProcessPlace& place);
  void read_slices(nvml::Device device, Accelerator* out, std::vector<nvml::Device>* handles);
  void add_names_alone(Accelerators* out) const;

  DeviceRoot root_;
  std::unique_ptr<NvmlLibrary> library_;
  Error failure_;
  bool tried_ = false;
};

void absent_everywhere(const std::string& why, Accelerator* out) {
  for (auto* text : {&out->name, &out->uuid, &out->pci_bus_id, &out->driver_version})
    if (!*text) *text = Known<std::string>::absent(why);
  out->memory = absent_memory(why);
  for (auto* number : {&out->utilization_percent, &out->memory_utilization_percent,
                       &out->temperature_celsius, &out->power_milliwatts})
    *number = Known<uint64_t>::absent(why);
  out->mig = Known<bool>::absent(why);
  out->processes = Known<std::vector<AcceleratorProcess>>::absent(why);
}

void read_identity(const NvmlLibrary& lib, nvml::Device device, Accelerator* out) {
  const auto text = [](auto function, nvml::Device d) {
    return [=](char* buffer, unsigned size) { return function(d, buffer, size); };
  };
  out->name = text_of(lib, lib.name != nullptr, text(lib.name, device));
  out->uuid = text_of(lib, lib.uuid != nullptr, text(lib.uuid, device));
  out->driver_version = text_of(lib, lib.driver_version != nullptr, lib.driver_version);
  out->pci_bus_id = text_of(lib, lib.pci_info != nullptr, [&](char* buffer, unsigned) {
    nvml::PciInfo info{};
    const nvml::Return code = lib.pci_info(device, &info);
    std::memcpy(buffer, info.bus_id, sizeof info.bus_id);
    return code;
  });
}

void read_condition(const NvmlLibrary& lib, nvml::Device device, Accelerator* out) {
  nvml::Utilization use{};
  const nvml::Return code = lib.utilization != nullptr ? lib.utilization(device, &use)
                                                       : nvml::Return{nvml::kFunctionNotFound};
  const auto percent = [&](uint32_t value) {
    if (code == nvml::kSuccess) return Known<uint64_t>::of(value);
    return Known<uint64_t>::absent(code == nvml::kFunctionNotFound ? kNvmlTooOld
                                                                   : lib.reason(code));
  };
  out->utilization_percent = percent(use.gpu);
  out->memory_utilization_percent = percent(use.memory);
  constexpr int kGpuSensor = 0;
  out->temperature_celsius = number_of(lib, lib.temperature != nullptr, [&](unsigned* v) {
    return lib.temperature(device, kGpuSensor, v);
  });
  out->power_milliwatts =
      number_of(lib, lib.power != nullptr, [&](unsigned* v) { return lib.power(device, v); });
}

void Nvidia::read_slices(nvml::Device device, Accelerator* out,
                         std::vector<nvml::Device>* handles) {
  const NvmlLibrary& lib = *library_;
  unsigned most = 0;
  if (lib.mig_count == nullptr || lib.mig_device == nullptr ||
      lib.mig_count(device, &most) != nvml::kSuccess)
    return;
  for (unsigned i = 0; i < std::min(most, kMostSlices); ++i) {
    nvml::Device handle = nullptr;
    if (lib.mig_device(device, i, &handle) != nvml::kSuccess) continue;  // a place without a slice
    Accelerator named;
    read_identity(lib, handle, &named);
    AcceleratorSlice slice{.index = i, .name = named.name, .uuid = named.uuid};
    const auto instance = [&](auto function) -> std::optional<unsigned> {
      unsigned id = 0;
      if (function == nullptr || function(handle, &id) != nvml::kSuccess) return std::nullopt;
      return id;
    };
    slice.gpu_instance = instance(lib.gpu_instance);
    slice.compute_instance = instance(lib.compute_instance);
    slice.memory = read_memory(lib, handle, root_.root);
    out->slices.push_back(std::move(slice));
    handles->push_back(handle);
  }
}

Accelerator Nvidia::read_device(unsigned index, Depth depth, const ProcessPlace& place) {
  const NvmlLibrary& lib = *library_;
  Accelerator out{.vendor = "nvidia", .source = "NVML"};
  nvml::Device device = nullptr;
  if (const nvml::Return code = lib.device_by_index(index, &device); code != nvml::kSuccess) {
    absent_everywhere(lib.reason(code), &out);
    return out;
  }
  absent_everywhere("not requested", &out);
  read_identity(lib, device, &out);
  out.memory = read_memory(lib, device, root_.root);
  out.host_total = out.host_used = Quantity::absent("NVML does not report it");
  unsigned mode = 0, pending = 0;
  // Boards that know no MIG answer that it is not supported, which is an answer.
  const nvml::Return code = lib.mig_mode != nullptr ? lib.mig_mode(device, &mode, &pending)
                                                    : nvml::Return{nvml::kNotSupported};
  const bool answered = code == nvml::kSuccess || code == nvml::kNotSupported;
  out.mig = answered ? Known<bool>::of(code == nvml::kSuccess && mode == 1)
                     : Known<bool>::absent(lib.reason(code));
  std::vector<nvml::Device> slices;
  if (out.mig && *out.mig.value) read_slices(device, &out, &slices);
  if (depth == Depth::kMemory) return out;
  out.processes = nvidia_processes(lib, device, out.slices, slices, place);
  if (depth == Depth::kEverything) read_condition(lib, device, &out);
  return out;
}

/// /proc/driver/nvidia/gpus/BUS/information: "Model: …", "GPU UUID: …", "Bus Location: …".
Known<std::string> line_of(const std::string& text, const std::string& key) {
  for (size_t at = 0; at < text.size();) {
    std::string line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    if (!line.starts_with(key + ":")) continue;
    line.erase(0, line.find_first_not_of(" \t", key.size() + 1));
    // Another GPU of this machine that was not given to this container has question marks.
    if (!line.empty() && line.find('?') == line.npos) return Known<std::string>::of(line);
  }
  return Known<std::string>::absent("/proc/driver/nvidia does not report it");
}

void Nvidia::add_names_alone(Accelerators* out) const {
  const std::string folder = root_.root + "/proc/driver/nvidia/gpus";
  const auto names =
      names_in(folder, [](std::string_view name) { return !name.starts_with('.'); }, kMostDevices);
  const std::string why =
      failure_.code == ErrorCode::kNotFound
          ? "NVIDIA's kernel driver is here, but libnvidia-ml.so.1 is not: a container needs the "
            "driver capability \"utility\""
          : failure_.message;
  for (const std::string& name : names) {
    Accelerator device{.vendor = "nvidia", .source = "/proc/driver/nvidia"};
    const std::string text = read_proc_text(folder + '/' + name + "/information");
    device.name = line_of(text, "Model");
    device.uuid = line_of(text, "GPU UUID");
    device.pci_bus_id = line_of(text, "Bus Location");
    absent_everywhere(why, &device);
    device.host_total = device.host_used = Quantity::absent(why);
    out->devices.push_back(std::move(device));
  }
  // A library without a kernel driver is on many machines that have no GPU: no news.
  if (!names.empty() || failure_.code != ErrorCode::kNotFound)
    out->notes.push_back("NVIDIA: " + why);
}

}  // namespace

std::unique_ptr<AcceleratorSource> nvidia_source(const DeviceRoot& root) {
  return std::make_unique<Nvidia>(root);
}

}  // namespace gpumemprof

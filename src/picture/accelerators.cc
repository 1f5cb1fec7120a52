#include "picture/accelerators.h"

namespace gpumemprof {

PictureAccelerators in_a_picture(const Accelerators& said) {
  PictureAccelerators out;
  for (const Accelerator& device : said.devices) {
    PictureAccelerator one;
    one.name = device.vendor + ":" + std::to_string(device.number);
    one.model = device.name.value.value_or(""), one.uuid = device.uuid.value.value_or("");
    one.vendor = device.vendor, one.driver_version = device.driver_version.value.value_or("");
    one.utilization_percent = device.utilization_percent;
    one.total = device.memory.total, one.used = device.memory.used, one.free = device.memory.free;
    if (device.processes) {
      // In a slice of MIG each of its users is listed by itself.
      for (const AcceleratorProcess& process : *device.processes.value) {
        if (process.here && process.used) one.by_pid[process.pid] += *process.used.bytes;
      }
    }
    out.devices.push_back(std::move(one));
  }
  if (out.devices.empty()) {
    out.absent_because = said.notes.empty() ? "no accelerator was found" : said.notes.front();
  }
  return out;
}

DeviceRoot device_root_of(const std::string& root) {
  if (root.empty()) return DeviceRoot::from_environment();
  return {.root = root, .nvml = ""};
}

}  // namespace gpumemprof

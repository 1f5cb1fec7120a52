#include "devices/accelerators.h"

#include <cstdlib>

#include "base/no_gpu_driver.h"

namespace gpumemprof {

DeviceRoot DeviceRoot::from_environment() {
  DeviceRoot out;
  if (const char* root = std::getenv("GPUMEMPROF_DEVICE_ROOT"); root != nullptr) out.root = root;
  return out;
}

AcceleratorReader::AcceleratorReader(DeviceRoot root) : root_(std::move(root)) {
  sources_.push_back(nvidia_source(root_));
  sources_.push_back(amd_source(root_));
  sources_.push_back(intel_source(root_));
}

Accelerators AcceleratorReader::read(Depth depth) {
  Accelerators out;
  const ProcessPlace place(root_.root);
  for (const auto& source : sources_) source->add(depth, place, &out);
  int number = 0;
  for (Accelerator& device : out.devices) device.number = number++;
  any_ = !out.devices.empty();
  if (!any_ && out.notes.empty()) out.notes.push_back(kNoGpuDriverHere);
  return out;
}

std::string why_not_listed(const Accelerators& all, int number) {
  const size_t count = all.devices.size();
  if (number < static_cast<int>(count)) return "";
  const std::string option = "--device " + std::to_string(number) + ": ";
  if (count == 0) return option + all.notes.at(0);
  return option + "there " +
         (count == 1 ? "is 1 accelerator" : "are " + std::to_string(count) + " accelerators") +
         " here";
}

bool uses(const Accelerator& device, int pid) {
  if (!device.processes) return false;
  for (const AcceleratorProcess& process : *device.processes.value)
    if (process.pid == pid && process.here) return true;
  return false;
}

Quantity used_by(const Accelerator& device, int pid, const AcceleratorSlice* slice) {
  if (!device.processes) return Quantity::absent(device.processes.absent_because);
  Quantity sum = Quantity::absent("the driver does not list this process");
  for (const AcceleratorProcess& process : *device.processes.value) {
    if (process.pid != pid || !process.here) continue;
    if (slice != nullptr && (process.gpu_instance != slice->gpu_instance ||
                             process.compute_instance != slice->compute_instance))
      continue;
    if (!process.used) return process.used;
    sum = Quantity::of(sum.bytes.value_or(0) + *process.used.bytes);
  }
  return sum;
}

}  // namespace gpumemprof

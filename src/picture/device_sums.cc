#include "picture/device_sums.h"

#include <string>

namespace gpumemprof {
namespace {

constexpr const char* kNotSeen = "the process is not visible from here";
constexpr const char* kWhichOne = "the machine's device is unknown";
constexpr const char* kSlices = "MIG divides the device; the slice is unknown";

/// The device that `wanted` is; null where that is not certain.
const Accelerator* find(const DriverDevice& wanted, bool is_only, const Accelerators& said,
                        int pid) {
  std::vector<const Accelerator*> listed;
  constexpr int8_t kXpu = 12;
  for (const Accelerator& device : said.devices) {
    if ((device.vendor == "intel") != (wanted.type == kXpu)) continue;
    if (wanted.place && device.pci_bus_id &&
        parse_pci_address(*device.pci_bus_id.value) == wanted.place)
      return &device;
    if (uses(device, pid)) listed.push_back(&device);
  }
  return !wanted.place && is_only && listed.size() == 1 ? listed.front() : nullptr;
}

/// The sum of all that is told of others; nothing where one of them does not tell.
std::optional<uint64_t> used_by_others(const Accelerator& device, int pid, std::string* why) {
  if (!device.processes) {
    *why = device.processes.absent_because;
    return std::nullopt;
  }
  uint64_t sum = 0;
  for (const AcceleratorProcess& process : *device.processes.value) {
    if (process.here && process.pid == pid) continue;
    if (!process.used) *why = process.used.absent_because;
    if (!process.used || __builtin_add_overflow(sum, *process.used.bytes, &sum))
      return std::nullopt;
  }
  return sum;
}

DeviceTruth truth_of(const Accelerator& device, int pid, uint64_t time_ns) {
  DeviceTruth out{.time_ns = time_ns};
  if (device.memory.source.empty()) {  // the host's memory is not the device's sum
    out.device_used_bytes = device.memory.used.bytes;
    out.reserved_bytes = device.memory.reserved.bytes;
  }
  const Quantity own = used_by(device, pid);
  out.process_used_bytes = own.bytes;
  out.why_no_process = own.absent_because;
  // Without this process in the list one of the others' numbers may be its own.
  if (own)
    out.others_used_bytes = used_by_others(device, pid, &out.why_no_others);
  else
    out.why_no_others = own.absent_because;
  return out;
}

}  // namespace

std::vector<PictureSum> device_sums(const DriverMemories* driver, const Accelerators& said,
                                    std::optional<int> pid, uint64_t time_ns) {
  std::vector<PictureSum> out;
  if (!driver) return out;
  for (const DriverDevice& device : driver->devices) {
    PictureSum& one = out.emplace_back();
    one.name = driver_device_name(device);
    one.refused = device.refused;
    one.moment = device.end;
    DeviceTruth truth{.time_ns = time_ns};
    truth.why_no_process = truth.why_no_others = pid ? kWhichOne : kNotSeen;
    const Accelerator* found =
        pid ? find(device, driver->devices.size() == 1, said, *pid) : nullptr;
    if (found) {
      one.accelerator = found->vendor + ':' + std::to_string(found->number);
      // Of a slice the driver of the whole tells too little.
      if (found->mig && *found->mig.value)
        truth.why_no_process = truth.why_no_others = kSlices;
      else
        truth = truth_of(*found, *pid, time_ns);
    }
    one.moment.truth = std::move(truth);
    one.sum = identity_of(one.moment);
  }
  return out;
}

}  // namespace gpumemprof

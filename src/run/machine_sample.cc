#include "run/machine_sample.h"

#include <set>

#include "devices/host_memory.h"
#include "devices/process_memory.h"

namespace gpumemprof {
namespace {

constexpr const char* kHost = "host";
constexpr const char* kKernel = "/proc";
constexpr const char* kOurs = "gpumemprof";
constexpr const char* kAll = "accelerators";

/// Puts values of one device of one source.
class SampledDevice {
 public:
  SampledDevice(std::string source, std::string device, TakenSample* out)
      : source_(std::move(source)), device_(std::move(device)), out_(out) {}

  void put(const char* field, SampledValue value, int64_t pid = 0) {
    out_->values.emplace_back(SampleKey{source_, device_, field, pid}, std::move(value));
  }
  void put(const char* field, const Quantity& quantity, int64_t pid = 0) {
    put(field,
        quantity ? SampledValue::of(*quantity.bytes)
                 : SampledValue::absent(quantity.absent_because),
        pid);
  }
  void put(const char* field, const Known<uint64_t>& known, int64_t pid = 0) {
    put(field, known ? SampledValue::of(*known.value) : SampledValue::absent(known.absent_because),
        pid);
  }
  void put(const char* field, const Known<std::string>& known) {
    put(field,
        known ? SampledValue::of_text(*known.value) : SampledValue::absent(known.absent_because));
  }
  /// Under the source that told it, which is the host's where the device shares its memory.
  void put(const DeviceMemory& memory) {
    if (!memory.source.empty() && memory.source != source_) {
      DeviceMemory own = memory;
      own.source.clear();
      return SampledDevice(memory.source, device_, out_).put(own);
    }
    put("total_bytes", memory.total), put("used_bytes", memory.used);
    put("free_bytes", memory.free), put("reserved_bytes", memory.reserved);
  }

 private:
  std::string source_, device_;
  TakenSample* out_;
};

/// Of all rows of a number that is nobody's here.
Quantity used_outside(const std::vector<AcceleratorProcess>& all, int pid) {
  uint64_t sum = 0;
  for (const AcceleratorProcess& process : all) {
    if (process.pid != pid) continue;
    if (!process.used) return process.used;
    sum += *process.used.bytes;
  }
  return Quantity::of(sum);
}

/// In a slice of MIG each user of it is listed by itself; here a process has one figure a device.
void put_processes(const Accelerator& device, SampledDevice* out) {
  if (!device.processes) {
    return out->put("processes", SampledValue::absent(device.processes.absent_because));
  }
  const auto& all = *device.processes.value;
  std::set<int> pids;
  for (const AcceleratorProcess& process : all) pids.insert(process.pid);
  // All of them, so that a reader knows where fewer are told.
  out->put("processes", SampledValue::of(pids.size()));
  if (!device.processes_note.empty())
    out->put("processes_note", SampledValue::of_text(device.processes_note));
  size_t told = 0;
  for (const AcceleratorProcess& process : all) {
    if (told == kMostSampledProcesses) break;
    if (pids.erase(process.pid) == 0) continue;
    ++told;
    if (process.here) {
      out->put("used_bytes", used_by(device, process.pid), process.pid);
    } else {
      // A number of another PID namespace: it must not be taken for a process of ours.
      out->put("used_bytes_of_driver_pid", used_outside(all, process.pid), process.pid);
    }
  }
}

}  // namespace

void add_host_values(const std::string& root, const std::vector<ProcessId>& processes,
                     TakenSample* out) {
  SampledDevice host(kKernel, kHost, out);
  const HostMemory memory = read_host_memory(root);
  host.put("total_bytes", memory.total), host.put("available_bytes", memory.available);
  host.put("limit_bytes", memory.limit), host.put("limit_used_bytes", memory.limit_used);
  uint64_t alive = 0;
  for (const ProcessId& id : processes) {
    if (alive >= kMostSampledProcesses) break;
    const ProcessMemory of = read_process_memory(root + "/proc", id.pid, false);
    if (!of.exists) continue;
    ++alive;
    host.put("resident_bytes", of.resident, id.pid);
    host.put("peak_resident_bytes", of.peak_resident, id.pid);
    host.put("shared_bytes", of.shared, id.pid);
    host.put("swapped_bytes", of.swapped, id.pid);
  }
  host.put("processes", SampledValue::of(processes.size()));
}

void add_accelerator_values(const Accelerators& told, TakenSample* out) {
  SampledDevice all(kOurs, kAll, out);
  if (told.devices.empty()) {
    return all.put("devices", SampledValue::absent(told.notes.empty() ? "no accelerator was found"
                                                                      : told.notes.front()));
  }
  all.put("devices", SampledValue::of(told.devices.size()));
  if (!told.notes.empty()) all.put("note", SampledValue::of_text(told.notes.front()));
  for (const Accelerator& device : told.devices) {
    const std::string name = device.vendor + ':' + std::to_string(device.number);
    SampledDevice one(device.source, name, out);
    one.put("name", device.name), one.put("uuid", device.uuid);
    one.put("pci_bus_id", device.pci_bus_id), one.put("driver_version", device.driver_version);
    one.put(device.memory);
    one.put("host_total_bytes", device.host_total), one.put("host_used_bytes", device.host_used);
    one.put("utilization_percent", device.utilization_percent);
    one.put("memory_utilization_percent", device.memory_utilization_percent);
    one.put("temperature_celsius", device.temperature_celsius);
    one.put("power_milliwatts", device.power_milliwatts);
    put_processes(device, &one);
    for (const AcceleratorSlice& slice : device.slices) {
      SampledDevice part(device.source, name + " slice " + std::to_string(slice.index), out);
      part.put("name", slice.name), part.put("uuid", slice.uuid);
      part.put(slice.memory);
    }
  }
}

void add_no_accelerators(const std::string& why, TakenSample* out) {
  SampledDevice(kOurs, kAll, out).put("devices", SampledValue::absent(why));
}

}  // namespace gpumemprof

#include "devices/accelerator_json.h"

#include <nlohmann/json.hpp>

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

void put(Json* out, const char* key, const Quantity& quantity) {
  (*out)[key] = quantity ? Json(*quantity.bytes) : Json(nullptr);
  if (!quantity) (*out)["unknown"][key] = quantity.absent_because;
}

template <class T>
void put(Json* out, const char* key, const Known<T>& known) {
  (*out)[key] = known ? Json(*known.value) : Json(nullptr);
  if (!known) (*out)["unknown"][key] = known.absent_because;
}

void put_memory(Json* out, const DeviceMemory& memory) {
  put(out, "total_bytes", memory.total);
  put(out, "used_bytes", memory.used);
  put(out, "free_bytes", memory.free);
  put(out, "reserved_bytes", memory.reserved);
  (*out)["memory_source"] = memory.source.empty() ? Json(nullptr) : Json(memory.source);
}

template <class Of>
void put_instances(Json* out, const Of& of) {
  (*out)["gpu_instance"] = of.gpu_instance ? Json(*of.gpu_instance) : Json(nullptr);
  (*out)["compute_instance"] = of.compute_instance ? Json(*of.compute_instance) : Json(nullptr);
}

Json process_json(const AcceleratorProcess& process) {
  Json out = {{"pid", process.pid}, {"here", process.here}};
  out["command"] = process.here ? Json(process.command) : Json(nullptr);
  out["kind"] = process.kind.empty() ? Json(nullptr) : Json(process.kind);
  out["unknown"] = Json::object();
  if (!process.here) out["unknown"]["command"] = process.not_here_because;
  if (process.kind.empty()) out["unknown"]["kind"] = "the kernel does not report it";
  put(&out, "used_bytes", process.used);
  put(&out, "utilization_percent", process.utilization_percent);
  put_instances(&out, process);
  return out;
}

Json slice_json(const AcceleratorSlice& slice) {
  Json out = {{"index", slice.index}, {"unknown", Json::object()}};
  put(&out, "name", slice.name);
  put(&out, "uuid", slice.uuid);
  put_instances(&out, slice);
  put_memory(&out, slice.memory);
  return out;
}

}  // namespace

Json accelerator_json(const Accelerator& device) {
  Json out = {{"number", device.number},
              {"vendor", device.vendor},
              {"source", device.source},
              {"unknown", Json::object()}};
  put(&out, "name", device.name);
  put(&out, "uuid", device.uuid);
  put(&out, "pci_bus_id", device.pci_bus_id);
  put(&out, "driver_version", device.driver_version);
  put_memory(&out, device.memory);
  put(&out, "host_total_bytes", device.host_total);
  put(&out, "host_used_bytes", device.host_used);
  put(&out, "utilization_percent", device.utilization_percent);
  put(&out, "memory_utilization_percent", device.memory_utilization_percent);
  put(&out, "temperature_celsius", device.temperature_celsius);
  put(&out, "power_milliwatts", device.power_milliwatts);
  put(&out, "mig", device.mig);
  out["slices"] = Json::array();
  for (const AcceleratorSlice& slice : device.slices) out["slices"].push_back(slice_json(slice));
  out["processes"] = device.processes ? Json::array() : Json(nullptr);
  if (!device.processes) out["unknown"]["processes"] = device.processes.absent_because;
  if (device.processes)
    for (const AcceleratorProcess& process : *device.processes.value)
      out["processes"].push_back(process_json(process));
  if (!device.processes_note.empty()) out["processes_note"] = device.processes_note;
  return out;
}

}  // namespace gpumemprof

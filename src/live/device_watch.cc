#include "live/device_watch.h"

#include "base/steady_clock.h"
#include "live/quantity_json.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

/// What neither this process nor the driver itself has.
Quantity others(const DeviceMemory& memory, const Quantity& own) {
  for (const Quantity* one : {&memory.used, &memory.reserved, &own})
    if (!*one) return Quantity::absent(one->absent_because);
  const uint64_t taken = *memory.used.bytes - *memory.reserved.bytes;
  if (*own.bytes > taken)
    return Quantity::absent("the figures are from different moments and contradict each other");
  return Quantity::of(taken - *own.bytes);
}

}  // namespace

void DeviceWatch::look(int64_t now_ns, bool first) {
  fresh_ = false;
  if (now_ns < next_ns_) return;
  const bool ask = !first && now_ns >= next_processes_ns_;
  Accelerators found = reader_.read(ask ? Depth::kProcesses : Depth::kMemory);
  if (ask) {
    next_processes_ns_ = now_ns + kSecondNs;
  } else if (found.devices.size() == now_.devices.size()) {
    for (size_t i = 0; i < found.devices.size(); ++i)
      found.devices[i].processes = std::move(now_.devices[i].processes);
  }
  fresh_ = ask;
  now_ = std::move(found);
  next_ns_ = now_.devices.empty() ? now_ns + 60 * kSecondNs : 0;
}

std::string collector_of(const Accelerator& device) {
  if (device.vendor == "nvidia") return "gpumemprof.cuda_tracker";
  return device.vendor == "amd" ? "gpumemprof.rocm_tracker" : "gpumemprof.xpu_tracker";
}

void put_accelerator(const Accelerator& device, const DeviceMemory& memory, TelemetryEvent* event,
                     Json* metadata) {
  event->used_bytes = memory.used.bytes;
  event->free_bytes = memory.free.bytes;
  event->total_bytes = memory.total.bytes;
  if (!memory.used) (*metadata)["unknown"]["device_used_bytes"] = memory.used.absent_because;
  if (!memory.free) (*metadata)["unknown"]["device_free_bytes"] = memory.free.absent_because;
  if (!memory.total) (*metadata)["unknown"]["device_total_bytes"] = memory.total.absent_because;
  if (!memory.source.empty()) (*metadata)["device_memory_source"] = memory.source;
  (*metadata)["accelerator"] = device.number;
  if (device.name) (*metadata)["accelerator_name"] = *device.name.value;
  if (device.uuid) (*metadata)["accelerator_uuid"] = *device.uuid.value;
  put(metadata, "driver_reserved_bytes", memory.reserved);
}

void put_matched(const DeviceWatch& watch, const VisibleDevices& visible, int pid, int index,
                 TelemetryEvent* event, Json* metadata) {
  const Accelerators& all = watch.now();
  const MatchedDevice match = match_device(all, visible, pid, index);
  if (!match.device) {
    event->used_bytes = event->free_bytes = event->total_bytes = std::nullopt;
    for (const char* name : {"device_used_bytes", "device_free_bytes", "device_total_bytes"})
      (*metadata)["unknown"][name] = match.why_not;
    return;
  }
  const Accelerator& device = all.devices[*match.device];
  const DeviceMemory& memory = matched_memory(all, match);
  put_accelerator(device, memory, event, metadata);
  if (match.slice) (*metadata)["slice"] = device.slices[*match.slice].index;
  if (!watch.fresh_processes()) return;
  const Quantity own = used_by(device, pid, match.slice ? &device.slices[*match.slice] : nullptr);
  put(metadata, "process_device_bytes", own);
  put(metadata, "others_device_bytes", others(memory, own));
}

}  // namespace gpumemprof

#include "native/bindings.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <unistd.h>

#include <mutex>
#include <nlohmann/json.hpp>

#include "devices/accelerator_json.h"
#include "devices/accelerators.h"
#include "devices/visible_device.h"

namespace nb = nanobind;

namespace gpumemprof::python {
namespace {

using Json = nlohmann::ordered_json;

/// One reader a process: a driver's session is of no use in a child after fork(). The parent's is
/// let go without being ended, since that would be done with the parent's descriptors.
Accelerators read(Depth depth) {
  static std::mutex mutex;
  static AcceleratorReader* reader = nullptr;
  static pid_t owner = 0;
  const std::lock_guard lock(mutex);
  if (owner != getpid()) {
    reader = new AcceleratorReader();
    owner = getpid();
  }
  return reader->read(depth);
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string accelerators(bool everything) {
  nb::gil_scoped_release release;  // a driver may take milliseconds
  const Accelerators all = read(everything ? Depth::kEverything : Depth::kMemory);
  Json out = {{"devices", Json::array()}, {"notes", all.notes}};
  for (const Accelerator& device : all.devices) out["devices"].push_back(accelerator_json(device));
  return dump(out);
}

std::string device_memory(int index, const std::optional<std::string>& uuid,
                          const std::optional<std::string>& cuda,
                          const std::optional<std::string>& rocm, bool pci_order) {
  nb::gil_scoped_release release;
  const Accelerators all = read(Depth::kEverything);
  const VisibleDevices visible{cuda, rocm, pci_order};
  const MatchedDevice match = match_own_device(all, visible, index, uuid);
  if (!match.device) return dump({{"accelerator", nullptr}, {"why_not", match.why_not}});
  const Accelerator& device = all.devices[*match.device];
  Json out = accelerator_json(device);
  if (match.slice) {
    // What a program sees as its GPU is the slice.
    const Json slice = Json(out["slices"][*match.slice]);
    for (const char* key :
         {"name", "uuid", "total_bytes", "used_bytes", "free_bytes", "reserved_bytes"}) {
      out[key] = slice[key];
      out["unknown"].erase(key);
      if (slice["unknown"].contains(key)) out["unknown"][key] = slice["unknown"][key];
    }
  }
  out["accelerator"] = device.number;
  const Quantity own =
      used_by(device, getpid(), match.slice ? &device.slices[*match.slice] : nullptr);
  out["own_bytes"] = own ? Json(*own.bytes) : Json(nullptr);
  if (!own) out["unknown"]["own_bytes"] = own.absent_because;
  return dump(out);
}

}  // namespace

void bind_accelerators(nb::module_& module) {
  module.def("accelerators", &accelerators, nb::arg("everything") = true,
             "JSON {devices, notes}, as `gpumemprof info --format json` has them");
  module.def("device_memory", &device_memory, nb::arg("index"), nb::arg("uuid").none(),
             nb::arg("cuda_visible").none(), nb::arg("rocm_visible").none(), nb::arg("pci_order"),
             "JSON of the accelerator that this process numbers `index`, with own_bytes; or "
             "{accelerator: null, why_not}");
}

}  // namespace gpumemprof::python

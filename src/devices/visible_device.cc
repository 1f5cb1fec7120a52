#include "devices/visible_device.h"

#include <algorithm>
#include <vector>

#include "devices/accelerators.h"
#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

std::optional<std::string> variable(const std::string& text, const std::string& name) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    if (text.compare(at, name.size() + 1, name + '=') == 0)
      return text.substr(at + name.size() + 1, end - at - name.size() - 1);
    at = end + 1;
  }
  return std::nullopt;
}

/// The word at a place of "a,b,c"; empty where there is none.
std::string word(const std::string& list, int place) {
  size_t at = 0;
  for (; place > 0; --place) {
    at = list.find(',', at);
    if (at == list.npos) return "";
    ++at;
  }
  std::string out = list.substr(at, list.find(',', at) - at);
  std::erase(out, ' ');
  return out;
}

MatchedDevice none(std::string why) { return {.why_not = std::move(why)}; }

/// By what the environment says alone. Programs number GPUs by NVML's order where they were told
/// to, or where all are alike; else the fastest comes first, and which that is nobody says.
MatchedDevice by_environment(const Accelerators& all, const std::vector<size_t>& candidates,
                             const VisibleDevices& visible, int index) {
  const bool nvidia = all.devices[candidates[0]].vendor == "nvidia";
  const auto& setting = nvidia ? visible.cuda : visible.rocm;
  const bool alike = std::ranges::all_of(candidates, [&](size_t i) {
    return all.devices[i].name &&
           all.devices[i].name.value == all.devices[candidates[0]].name.value;
  });
  const bool in_order = candidates.size() == 1 || !nvidia || visible.pci_order || alike;
  size_t place = static_cast<size_t>(index);
  if (setting) {
    const std::string name = word(*setting, index);
    if (name.empty()) return none("the program's environment hides devices from it");
    for (const size_t i : candidates) {
      const Accelerator& device = all.devices[i];
      // A part of the UUID is enough for CUDA, too.
      if (name.starts_with("GPU-") && device.uuid && device.uuid.value->starts_with(name))
        return {.device = i};
      for (size_t s = 0; s < device.slices.size(); ++s)
        if (name.starts_with("MIG-") && device.slices[s].uuid &&
            *device.slices[s].uuid.value == name)
          return {.device = i, .slice = s};
    }
    const auto number = whole_number(name);
    if (!number) return none("the program's environment names a device that does not exist here");
    place = *number;
  }
  if (!in_order) return none("there are several kinds of GPUs; their order in CUDA is unknown");
  if (place >= candidates.size()) return none("there are fewer devices here");
  return {.device = candidates[place]};
}

/// A device that MIG divides is seen as one slice of it.
MatchedDevice into_slice(const Accelerators& all, MatchedDevice match, int pid) {
  const Accelerator& device = all.devices[*match.device];
  if (match.slice || !device.mig || !*device.mig.value) return match;
  std::vector<size_t> possible;
  for (size_t s = 0; s < device.slices.size(); ++s) {
    const auto runs_here = [&](const AcceleratorProcess& p) {
      return p.pid == pid && p.here && p.gpu_instance == device.slices[s].gpu_instance &&
             p.compute_instance == device.slices[s].compute_instance;
    };
    if (device.processes && std::ranges::any_of(*device.processes.value, runs_here))
      possible.push_back(s);
  }
  if (possible.empty() && device.slices.size() == 1) possible.push_back(0);
  if (possible.size() != 1) return none("MIG divides the device; the slice is unknown");
  match.slice = possible[0];
  return match;
}

/// The devices that frameworks number. Who has GPUs of both vendors has a framework for one of
/// them: NVIDIA's, unless a list says otherwise.
std::vector<size_t> numbered(const Accelerators& all) {
  std::vector<size_t> out;
  for (const char* vendor : {"nvidia", "amd"}) {
    for (size_t i = 0; i < all.devices.size(); ++i)
      if (all.devices[i].vendor == vendor) out.push_back(i);
    if (!out.empty()) break;
  }
  return out;
}

}  // namespace

VisibleDevices VisibleDevices::of_environment(const std::string& text) {
  VisibleDevices out;
  out.cuda = variable(text, "CUDA_VISIBLE_DEVICES");
  out.rocm = variable(text, "HIP_VISIBLE_DEVICES");
  if (!out.rocm) out.rocm = variable(text, "ROCR_VISIBLE_DEVICES");
  out.pci_order = variable(text, "CUDA_DEVICE_ORDER") == "PCI_BUS_ID";
  return out;
}

MatchedDevice match_device(const Accelerators& all, const VisibleDevices& visible, int pid,
                           int index) {
  const std::vector<size_t> candidates = numbered(all);
  std::vector<size_t> listed;
  for (size_t i = 0; i < all.devices.size(); ++i)
    if (uses(all.devices[i], pid) && all.devices[i].vendor != "intel") listed.push_back(i);
  if (candidates.empty())
    return none(all.notes.empty() ? "no driver lists such a device" : all.notes[0]);
  if (listed.size() == 1) return into_slice(all, {.device = listed[0]}, pid);
  if (index < 0) return none("the recording has no number for the device");
  const MatchedDevice match = by_environment(all, candidates, visible, index);
  if (!match.device) return match;
  if (!listed.empty() && std::ranges::find(listed, *match.device) == listed.end())
    return none("the driver lists the process on devices that its environment does not name");
  const bool nvidia = all.devices[candidates[0]].vendor == "nvidia";
  const auto& setting = nvidia ? visible.cuda : visible.rocm;
  if (listed.empty() && candidates.size() > 1 && !setting)
    return none("there are " + std::to_string(candidates.size()) +
                " GPUs, and the driver lists the process on none of them");
  return into_slice(all, match, pid);
}

MatchedDevice match_own_device(const Accelerators& all, const VisibleDevices& visible, int index,
                               const std::optional<std::string>& uuid) {
  const std::vector<size_t> candidates = numbered(all);
  if (candidates.empty())
    return none(all.notes.empty() ? "no driver lists such a device" : all.notes[0]);
  if (!uuid) {
    const MatchedDevice match = by_environment(all, candidates, visible, index);
    return match.device ? into_slice(all, match, 0) : match;
  }
  const std::string bare =
      uuid->substr(uuid->starts_with("GPU-") || uuid->starts_with("MIG-") ? 4 : 0);
  for (const size_t i : candidates) {
    const Accelerator& device = all.devices[i];
    if (device.uuid && *device.uuid.value == "GPU-" + bare)
      return into_slice(all, {.device = i}, 0);
    for (size_t s = 0; s < device.slices.size(); ++s)
      if (device.slices[s].uuid && *device.slices[s].uuid.value == "MIG-" + bare)
        return {.device = i, .slice = s};
  }
  return none("the driver lists no device with the UUID from CUDA");
}

const DeviceMemory& matched_memory(const Accelerators& all, const MatchedDevice& match) {
  const Accelerator& device = all.devices.at(*match.device);
  return match.slice ? device.slices.at(*match.slice).memory : device.memory;
}

}  // namespace gpumemprof

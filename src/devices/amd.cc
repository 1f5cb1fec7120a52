// AMD's GPUs through the files of amdgpu and, for compute, of KFD. No library of ROCm's is needed.
#include <algorithm>
#include <map>
#include <set>

#include "devices/accelerators.h"
#include "devices/drm_cards.h"
#include "devices/drm_usage.h"
#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostNodes = 256;

/// "drm_render_minor 128" of a node's properties.
std::optional<uint64_t> property(const std::string& text, const std::string& key) {
  for (size_t at = 0; at < text.size();) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    if (line.starts_with(key + ' ')) return whole_number(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

/// KFD's number of a GPU by the minor number of its render node.
std::map<int, std::string> kfd_gpus(const std::string& root) {
  std::map<int, std::string> out;
  const std::string nodes = root + "/sys/class/kfd/kfd/topology/nodes";
  for (const std::string& node : entries_of(nodes)) {
    if (out.size() >= kMostNodes) break;
    const auto id = whole_number(read_proc_text(nodes + '/' + node + "/gpu_id"));
    const auto minor =
        property(read_proc_text(nodes + '/' + node + "/properties"), "drm_render_minor");
    // A node whose number is 0 is a CPU.
    if (id && *id != 0 && minor && *minor < 65536)
      out[static_cast<int>(*minor)] = std::to_string(*id);
  }
  return out;
}

/// PID: bytes in VRAM, of compute programs.
std::map<int, Quantity> kfd_processes(const std::string& root, const std::string& gpu) {
  std::map<int, Quantity> out;
  const std::string folder = root + "/sys/class/kfd/kfd/proc";
  for (const std::string& name : entries_of(folder)) {
    const auto pid = whole_number(name);
    if (!pid || *pid > INT32_MAX) continue;
    const std::string path = folder + '/' + name + "/vram_" + gpu;
    if (const auto bytes = whole_number(read_proc_text(path)))
      out[static_cast<int>(*pid)] = Quantity::of(*bytes);
  }
  return out;
}

DeviceMemory read_memory(const std::string& device) {
  DeviceMemory out;
  out.total = read_bytes(device + "/mem_info_vram_total");
  out.used = read_bytes(device + "/mem_info_vram_used");
  out.free = out.total && out.used && *out.used.bytes <= *out.total.bytes
                 ? Quantity::of(*out.total.bytes - *out.used.bytes)
                 : Quantity::absent("total and used memory are not both known");
  out.reserved = Quantity::absent("amdgpu does not report the firmware's memory");
  return out;
}

class Amd : public AcceleratorSource {
 public:
  explicit Amd(std::string root) : root_(std::move(root)) {}

  void add(Depth depth, const ProcessPlace& place, Accelerators* out) override {
    if (!tried_) cards_ = list_drm_cards(root_, {"amdgpu"});
    tried_ = true;
    if (cards_.empty()) return;
    const bool ask = depth != Depth::kMemory;
    const auto gpus = ask ? kfd_gpus(root_) : std::map<int, std::string>();
    const DrmProcesses all = ask ? read_drm_processes(root_) : DrmProcesses();
    for (const DrmCard& card : cards_) {
      Accelerator device = accelerator_of_card(card, root_);
      device.vendor = "amd";
      // A board number, as ROCm's tools show it.
      std::string serial = read_proc_text(card.device + "/unique_id").substr(0, 64);
      serial.resize(std::min(serial.size(), serial.find_first_of(" \n")));
      if (!serial.empty()) device.uuid = Known<std::string>::of("GPU-" + serial);
      device.memory = read_memory(card.device);
      device.host_total = read_bytes(card.device + "/mem_info_gtt_total");
      device.host_used = read_bytes(card.device + "/mem_info_gtt_used");
      device.utilization_percent = read_number(card.device + "/gpu_busy_percent");
      device.memory_utilization_percent = read_number(card.device + "/mem_busy_percent");
      if (ask)
        add_processes(card, gpus, all, place, &device);
      else
        device.processes = Known<std::vector<AcceleratorProcess>>::absent("not requested");
      out->devices.push_back(std::move(device));
    }
  }

 private:
  /// KFD counts what compute allocated, fdinfo what every opened card has, compute among it where
  /// the kernel is new: so the larger of the two is what the process has at least.
  void add_processes(const DrmCard& card, const std::map<int, std::string>& gpus,
                     const DrmProcesses& all, const ProcessPlace& place, Accelerator* device) {
    std::map<int, AcceleratorProcess> found;
    std::set<int> opened;
    const auto is_vram = [](const std::string& region) { return region == "vram"; };
    for (AcceleratorProcess& one :
         processes_of_card(all, card, is_vram, "this kernel's amdgpu does not report it")) {
      one.kind = "graphics";
      opened.insert(one.pid);
      found.emplace(one.pid, std::move(one));
    }
    const auto gpu = card.render_minor ? gpus.find(*card.render_minor) : gpus.end();
    if (gpu != gpus.end()) {
      for (const auto& [pid, bytes] : kfd_processes(root_, gpu->second)) {
        AcceleratorProcess& one = found[pid];
        one.pid = pid, one.kind = "compute";
        one.utilization_percent = Known<uint64_t>::absent("KFD reports no percentage");
        if (!one.used || *one.used.bytes < *bytes.bytes) one.used = bytes;
      }
    }
    device->processes = Known<std::vector<AcceleratorProcess>>::of({});
    for (auto& [pid, process] : found) {
      // KFD counts PIDs of the machine; descriptors are those of processes that we see.
      if (opened.contains(pid))
        place.look_up_own(&process);
      else
        place.look_up(&process, "amd");
      device->processes.value->push_back(std::move(process));
    }
    device->processes_note = unreadable_note(all);
  }

  std::string root_;
  std::vector<DrmCard> cards_;
  bool tried_ = false;
};

}  // namespace

std::unique_ptr<AcceleratorSource> amd_source(const DeviceRoot& root) {
  return std::make_unique<Amd>(root.root);
}

}  // namespace gpumemprof

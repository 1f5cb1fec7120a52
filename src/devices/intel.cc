// Intel's GPUs as far as files tell: i915 and xe say what is used of a card to their own ioctls
// alone, so that the device's use is absent and that of processes is known.
#include "devices/accelerators.h"
#include "devices/drm_cards.h"
#include "devices/drm_usage.h"
#include "devices/proc_text.h"

namespace gpumemprof {
namespace {

/// xe: the sum of its tiles, in either of the two places where kernels have had it. i915: Intel's
/// own build alone has the file.
Quantity total_memory(const DrmCard& card) {
  uint64_t sum = 0;
  bool any = false;
  for (const std::string& name : entries_of(card.device)) {
    if (!name.starts_with("tile")) continue;
    const std::string tile = card.device + '/' + name;
    auto bytes = whole_number(read_proc_text(tile + "/physical_vram_size_bytes"));
    if (!bytes) bytes = whole_number(read_proc_text(tile + "/memory/physical_vram_size_bytes"));
    if (!bytes || *bytes > UINT64_MAX - sum) continue;
    sum += *bytes, any = true;
  }
  if (any) return Quantity::of(sum);
  if (const auto bytes = whole_number(read_proc_text(card.folder + "/lmem_total_bytes")))
    return Quantity::of(*bytes);
  return Quantity::absent("the kernel does not report it: " + card.driver +
                          " has it only in its own ioctl, and a GPU inside a processor has no "
                          "memory of its own");
}

bool is_local(const std::string& region) {
  return region.starts_with("vram") || region.starts_with("local");
}

class Intel : public AcceleratorSource {
 public:
  explicit Intel(std::string root) : root_(std::move(root)) {}

  void add(Depth depth, const ProcessPlace& place, Accelerators* out) override {
    if (!tried_) cards_ = list_drm_cards(root_, {"i915", "xe"});
    tried_ = true;
    if (cards_.empty()) return;
    const bool ask = depth != Depth::kMemory;
    const DrmProcesses all = ask ? read_drm_processes(root_) : DrmProcesses();
    for (const DrmCard& card : cards_) {
      Accelerator device = accelerator_of_card(card, root_);
      device.vendor = "intel";
      device.memory.total = total_memory(card);
      const Quantity none = Quantity::absent("the kernel does not report it: " + card.driver +
                                             " has it only in its own ioctl");
      device.memory.used = device.memory.free = device.memory.reserved = none;
      device.host_total = device.host_used = none;
      device.utilization_percent = device.memory_utilization_percent =
          Known<uint64_t>::absent("the kernel does not report it");
      device.processes = Known<std::vector<AcceleratorProcess>>::absent("not requested");
      if (ask) {
        device.processes.value = processes_of_card(
            all, card, is_local, "the process has no memory on the card, or the kernel is too old");
        device.processes.absent_because.clear();
        for (AcceleratorProcess& process : *device.processes.value) place.look_up_own(&process);
        device.processes_note = unreadable_note(all);
      }
      out->devices.push_back(std::move(device));
    }
  }

 private:
  std::string root_;
  std::vector<DrmCard> cards_;
  bool tried_ = false;
};

}  // namespace

std::unique_ptr<AcceleratorSource> intel_source(const DeviceRoot& root) {
  return std::make_unique<Intel>(root.root);
}

}  // namespace gpumemprof

#include "devices/drm_usage.h"

namespace gpumemprof {

std::vector<AcceleratorProcess> processes_of_card(
    const DrmProcesses& all, const DrmCard& card,
    const std::function<bool(const std::string&)>& is_local, const std::string& why) {
  std::vector<AcceleratorProcess> out;
  for (const DrmProcess& process : all.processes) {
    // A card on no PCI bus has no address to tell it by: its driver must do.
    if (process.driver != card.driver || process.pci != card.pci) continue;
    AcceleratorProcess one{.pid = process.pid};
    bool told = false;
    uint64_t bytes = 0;
    for (const auto& [region, size] : process.regions) {
      if (!is_local(region)) continue;
      told = true;
      bytes = size > UINT64_MAX - bytes ? UINT64_MAX : bytes + size;
    }
    one.used = told ? Quantity::of(bytes) : Quantity::absent(why);
    one.utilization_percent =
        Known<uint64_t>::absent("the kernel reports engine times, no current percentage");
    out.push_back(std::move(one));
  }
  return out;
}

std::string unreadable_note(const DrmProcesses& all) {
  if (all.unreadable == 0) return "";
  return std::to_string(all.unreadable) +
         " processes of other users are not visible; some may be missing";
}

}  // namespace gpumemprof

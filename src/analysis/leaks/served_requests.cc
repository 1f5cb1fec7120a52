#include <absl/container/flat_hash_map.h>

#include "analysis/leaks/leak_findings.h"

namespace gpumemprof {

void add_served_requests(const std::vector<ProcessHistory>& histories,
                         std::vector<DeviceAnalysis>* devices) {
  for (DeviceAnalysis& device : *devices) {
    if (device.refusals.empty()) continue;
    absl::flat_hash_map<uint32_t, const SiteHistory*> by_stack;
    for (const ProcessHistory& history : histories) {
      for (const SiteHistory& site : history.sites) {
        if (site.device == device.device && site.stack != 0) by_stack[site.stack] = &site;
      }
    }
    for (Refusal& refusal : device.refusals) {
      const auto known = by_stack.find(refusal.stack);
      if (known == by_stack.end()) continue;
      refusal.served_count = known->second->alloc_count;
      refusal.largest_served_bytes = known->second->largest_bytes;
    }
  }
}

}  // namespace gpumemprof

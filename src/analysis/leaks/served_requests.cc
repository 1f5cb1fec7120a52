#include "analysis/leaks/served_requests.h"

#include <absl/container/flat_hash_map.h>

namespace gpumemprof {

void add_served_requests(const std::vector<ProcessHistory>& histories,
                         std::vector<DeviceAnalysis>* devices) {
  constexpr uint64_t kFew = 4;  // below: what one operation asks for beside its result
  for (DeviceAnalysis& device : *devices) {
    if (device.refusals.empty()) continue;
    absl::flat_hash_map<uint32_t, uint64_t> largest;  // by stack
    for (const ProcessHistory& history : histories) {
      for (const SiteHistory& site : history.sites) {
        if (site.device == device.device && site.stack != 0 && site.alloc_count >= kFew)
          largest[site.stack] = site.largest_bytes;
      }
    }
    for (Refusal& refusal : device.refusals) {
      const auto known = largest.find(refusal.stack);
      if (known != largest.end()) refusal.largest_served_bytes = known->second;
    }
  }
}

}  // namespace gpumemprof

#include "analysis/leaks/served_requests.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "analysis/leaks/leaks.h"

namespace gpumemprof {

void add_served_requests(const std::vector<ProcessHistory>& histories, const Tables& tables,
                         std::vector<DeviceAnalysis>* devices) {
  const auto frame_of = [&](uint32_t stack) {
    return tables.stacks.node(leak_line(tables, stack)).frame;
  };
  for (DeviceAnalysis& device : *devices) {
    if (device.refusals.empty()) continue;
    absl::flat_hash_map<uint32_t, uint64_t> largest;  // by frame
    for (const ProcessHistory& history : histories) {
      for (const SiteHistory& site : history.sites) {
        if (site.device != device.device || site.stack == 0) continue;
        uint64_t& known = largest[frame_of(site.stack)];
        known = std::max(known, site.largest_bytes);
      }
    }
    for (Refusal& refusal : device.refusals) {
      if (refusal.stack == 0) continue;
      const auto known = largest.find(frame_of(refusal.stack));
      if (known != largest.end()) refusal.largest_served_bytes = known->second;
    }
  }
}

}  // namespace gpumemprof

#include "analysis/ranks/nccl_communicators.h"

#include <algorithm>
#include <string_view>

#include "analysis/driver/driver_memories.h"
#include "analysis/statistics/worth.h"

namespace gpumemprof {
namespace {

uint64_t of_collectives(const std::vector<DriverLibrary>& libraries) {
  uint64_t bytes = 0;
  for (const DriverLibrary& library : libraries) {
    const std::string_view name = library.name;
    if (name.starts_with("libnccl") || name.starts_with("librccl")) bytes += library.bytes;
  }
  return bytes;
}

/// The framework's device where it is recorded, else the driver's memory on it.
uint16_t index_of(const DriverDevice& device, const Tables& tables) {
  std::optional<uint16_t> of_driver;
  for (size_t i = 0; i < tables.devices.size(); ++i) {
    const Device& known = tables.devices[i];
    if (known.process != device.process || known.type != device.type || known.index != device.index)
      continue;
    if (known.layer != Layer::kDriver) return static_cast<uint16_t>(i);
    if (!of_driver) of_driver = static_cast<uint16_t>(i);
  }
  return of_driver.value_or(0);
}

}  // namespace

void add_nccl_communicators(const Tables& tables, Analysis* analysis) {
  if (!analysis->driver) return;
  for (const DriverDevice& device : analysis->driver->devices) {
    const uint64_t bytes = of_collectives(device.peak.libraries);
    const uint64_t all = device.peak.asked_bytes();
    const auto host =
        std::ranges::find(analysis->driver->hosts, device.process, &DriverHost::process);
    const bool has_host = host != analysis->driver->hosts.end();
    const uint64_t pinned = has_host ? of_collectives(host->libraries) : 0;
    if (!is_worth(bytes, all) && !(bytes != 0 && has_host && is_worth(pinned, host->pinned_peak_bytes)))
      continue;
    Finding finding{
        .kind = FindingKind::kNcclCommunicators,
        .severity = Severity::kInfo,
        .title = "NCCL held " + format_bytes(bytes) + " of the " + format_bytes(all) +
                 " that the driver had handed out at the peak; PyTorch does not count NCCL's "
                 "memory" +
                 (pinned != 0 ? "; NCCL also pinned " + format_bytes(pinned) + " of host memory"
                              : ""),
        .bytes = bytes,
        .evidence = {{"nccl_bytes", bytes},
                     {"nccl_at_end_bytes", of_collectives(device.end.libraries)},
                     {"nccl_pinned_host_bytes", pinned},
                     {"driver_bytes", all}},
        .fix = "create fewer process groups and destroy those that are done "
               "(torch.distributed.destroy_process_group), or give each fewer channels "
               "(NCCL_MAX_NCHANNELS, NCCL_BUFFSIZE)",
        .device = index_of(device, tables)};
    analysis->findings.push_back(std::move(finding));
  }
}

}  // namespace gpumemprof

#include "analysis/replay/uneven_devices.h"

#include <absl/container/flat_hash_map.h>

#include <vector>

#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

uint64_t mean_of(const HolderLine& line) { return line.count == 0 ? 0 : line.bytes / line.count; }

struct OtherDevice {
  uint16_t device = 0;
  absl::flat_hash_map<uint32_t, uint64_t> mean_bytes;  // by the node of a line
};

std::vector<OtherDevice> beside(const Analysis& analysis, const Tables& tables,
                                const DeviceAnalysis& device) {
  std::vector<OtherDevice> out;
  const Device& own = tables.devices[device.device];
  for (const DeviceAnalysis& each : analysis.devices) {
    const Device& its = tables.devices[each.device];
    if (each.device == device.device || !each.parts.empty() || its.type != own.type ||
        its.process != own.process || its.layer != own.layer)
      continue;
    OtherDevice& other = out.emplace_back(OtherDevice{.device = each.device, .mean_bytes = {}});
    for (const HolderLine& line : group_by_line(each.holders_at_peak, tables)) {
      if (const uint64_t mean = mean_of(line)) other.mean_bytes[line.node] = mean;
    }
  }
  return out;
}

}  // namespace

std::optional<UnevenLine> uneven_line(const Analysis& analysis, const Tables& tables,
                                      const DeviceAnalysis& device) {
  const std::vector<OtherDevice> others = beside(analysis, tables, device);
  std::optional<UnevenLine> first;
  uint64_t all_bytes = 0, uneven_bytes = 0;
  for (const HolderLine& line : group_by_line(device.holders_at_peak, tables)) {
    all_bytes += line.bytes;
    if (line.node == 0) continue;
    UnevenLine uneven{.node = line.node, .mean_bytes = mean_of(line)};
    for (const OtherDevice& other : others) {
      const auto its = other.mean_bytes.find(line.node);
      if (its == other.mean_bytes.end() || its->second <= uneven.other_mean_bytes) continue;
      uneven.other_device = other.device, uneven.other_mean_bytes = its->second;
    }
    if (uneven.other_mean_bytes == 0 ||
        uneven.mean_bytes / kUnevenTimes < uneven.other_mean_bytes)
      continue;
    uneven_bytes += line.bytes;
    if (!first) first = uneven;
  }
  return uneven_bytes >= all_bytes - uneven_bytes ? first : std::nullopt;
}

}  // namespace gpumemprof

#include "analysis/compare/pick_device.h"

#include <algorithm>
#include <set>
#include <string>

namespace gpumemprof {
namespace {

constexpr size_t kNamesInMessage = 20;

std::string pid_of(const DeviceAnalysis& device, const Tables& tables) {
  if (device.device >= tables.devices.size()) return "";
  const uint32_t process = tables.devices[device.device].process;
  return process < tables.processes.size() ? std::to_string(tables.processes[process].pid) : "";
}

std::string names_there_are(const Analysis& analysis, const Tables& tables) {
  std::set<std::string> names;
  for (const auto* list : {&analysis.devices, &analysis.sums}) {
    for (const DeviceAnalysis& device : *list) names.insert(memory_name(device, tables));
  }
  std::string text;
  size_t listed = 0;
  for (const std::string& name : names) {
    if (listed++ == kNamesInMessage) return text + ", …";
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace

Result<const DeviceAnalysis*> pick_device(const Analysis& analysis, const Tables& tables,
                                          std::string_view name) {
  if (name.empty()) return main_device(analysis, tables);
  const size_t slash = name.find('/');
  const bool has_pid = slash != std::string_view::npos;
  const std::string_view pid = has_pid ? name.substr(0, slash) : std::string_view();
  const std::string_view device_part = has_pid ? name.substr(slash + 1) : name;
  const DeviceAnalysis* best = nullptr;
  for (const auto* list : {&analysis.devices, &analysis.sums}) {
    for (const DeviceAnalysis& device : *list) {
      if (memory_name(device, tables) != device_part) continue;
      if (has_pid && pid_of(device, tables) != pid) continue;
      if (best == nullptr || device.figures.peak_bytes > best->figures.peak_bytes) best = &device;
    }
  }
  if (best != nullptr) return best;
  const std::string names = names_there_are(analysis, tables);
  return fail(ErrorCode::kUsage, "no device '" + std::string(name) + "'" +
                                     (names.empty() ? ": nothing was allocated" : ", only " + names));
}

bool is_of_worker(const DeviceAnalysis& device, const Tables& tables) {
  if (device.device >= tables.devices.size()) return false;
  const uint32_t process = tables.devices[device.device].process;
  if (process >= tables.processes.size()) return false;
  const Process& own = tables.processes[process];
  return std::ranges::any_of(tables.processes, [&](const Process& other) {
    return other.pid == own.parent_pid && other.host == own.host;
  });
}

const DeviceAnalysis* main_device_of_role(const Analysis& analysis, const Tables& tables,
                                          bool is_worker) {
  return main_device(analysis, tables, [&](const DeviceAnalysis& device) {
    return is_of_worker(device, tables) == is_worker;
  });
}

}  // namespace gpumemprof

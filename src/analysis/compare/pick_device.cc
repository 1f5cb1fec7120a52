#include "analysis/compare/pick_device.h"

#include <algorithm>
#include <set>
#include <string>

namespace gpumemprof {
namespace {

constexpr size_t kNamesInMessage = 20;

const Process* process_of(const DeviceAnalysis& device, const Tables& tables) {
  if (device.device >= tables.devices.size()) return nullptr;
  const uint32_t process = tables.devices[device.device].process;
  return process < tables.processes.size() ? &tables.processes[process] : nullptr;
}

/// `name`: "41", "rank 1" or "rank1".
bool is_called(const Process* process, std::string_view name) {
  if (process == nullptr) return false;
  if (!name.starts_with("rank")) return std::to_string(process->pid) == name;
  name.remove_prefix(name.starts_with("rank ") ? 5 : 4);
  return process->rank && std::to_string(*process->rank) == name;
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
  const bool has_process = slash != std::string_view::npos;
  const std::string_view process = has_process ? name.substr(0, slash) : std::string_view();
  const std::string_view device_part = has_process ? name.substr(slash + 1) : name;
  const DeviceAnalysis* best = nullptr;
  for (const auto* list : {&analysis.devices, &analysis.sums}) {
    for (const DeviceAnalysis& device : *list) {
      if (memory_name(device, tables) != device_part) continue;
      if (has_process && !is_called(process_of(device, tables), process)) continue;
      if (best == nullptr || device.figures.peak_bytes > best->figures.peak_bytes) best = &device;
    }
  }
  if (best != nullptr) return best;
  const std::string names = names_there_are(analysis, tables);
  return fail(ErrorCode::kUsage, "no device '" + std::string(name) + "'" +
                                     (names.empty() ? ": nothing was allocated" : ", only " + names));
}

ProcessRole role_of(const DeviceAnalysis& device, const Tables& tables) {
  const Process* own = process_of(device, tables);
  if (own == nullptr) return {};
  const auto started = [&](const Process& other) {
    return other.pid == own->parent_pid && other.host == own->host;
  };
  return {std::ranges::any_of(tables.processes, started), own->rank};
}

bool is_same_role(const ProcessRole& a, const ProcessRole& b) {
  return a.is_worker == b.is_worker && (!a.rank || !b.rank || *a.rank == *b.rank);
}

const DeviceAnalysis* main_device_of_role(const Analysis& analysis, const Tables& tables,
                                          const ProcessRole& role) {
  return main_device(analysis, tables, [&](const DeviceAnalysis& device) {
    return is_same_role(role_of(device, tables), role);
  });
}

}  // namespace gpumemprof

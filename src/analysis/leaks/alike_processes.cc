#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/finding_figure.h"
#include "analysis/leaks/leak_findings.h"
#include "analysis/leaks/leak_limit.h"
#include "analysis/leaks/leak_names.h"
#include "analysis/statistics/statistics.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

/// Processes of one host take its memory together: all of them reach its limit sooner than one.
void share_limit(const std::vector<Finding*>& alike, const Tables& tables,
                 const std::vector<HostRoom>* host_rooms, Finding* told) {
  uint64_t* const steps = find_figure(*told, "steps_until_limit");
  const HostRoom* room = host_room_of(told->device, tables, host_rooms);
  if (!steps || !room || room->is_of_process) return;
  uint64_t together = 0;  // a step
  for (Finding* one : alike) {
    const HostRoom* other = host_room_of(one->device, tables, host_rooms);
    if (other && other->host == room->host && find_figure(*one, "steps_until_limit"))
      together += *find_figure(*one, "bytes_a_step");
  }
  const uint64_t own = *find_figure(*told, "bytes_a_step");
  if (together <= own) return;
  const double share = static_cast<double>(own) / static_cast<double>(together);
  const auto reduce = [&](uint64_t* figure) {
    *figure = static_cast<uint64_t>(static_cast<double>(*figure) * share);
  };
  reduce(steps);
  if (uint64_t* const seconds = find_figure(*told, "seconds_until_limit")) reduce(seconds);
  if (*steps <= *find_figure(*told, "steps")) end_again(told);
  told->evidence.emplace_back("all_processes_bytes_a_step", together);
}

}  // namespace

void fold_memories(const Tables& tables, std::vector<Finding>* findings) {
  using Cause = std::tuple<uint32_t, std::string, uint32_t>;  // process, name, line
  std::map<Cause, std::vector<size_t>> alike;
  for (size_t i = 0; i < findings->size(); ++i) {
    const Finding& one = (*findings)[i];
    if (one.name != kRetraced && one.name != kKernelsKept) continue;
    alike[{tables.devices[one.device].process, one.name, tables.stacks.node(one.stack).frame}]
        .push_back(i);
  }
  std::vector<bool> is_folded(findings->size());
  for (const auto& [cause, places] : alike) {
    if (places.size() == 1) continue;
    const size_t most = *std::ranges::max_element(places, {}, [&](size_t i) {
      return std::pair((*findings)[i].severity, (*findings)[i].bytes);
    });
    std::string others;
    uint64_t all_a_step = 0;
    for (const size_t i : places) {
      const Finding& one = (*findings)[i];
      const uint64_t* known = find_figure(one, "bytes_a_step");
      const uint64_t a_step = known ? *known : 0;
      all_a_step += a_step;
      if (i == most) continue;
      others += (others.empty() ? "" : "; ") + device_name(tables.devices[one.device]) + ", by " +
                format_bytes(a_step) + " a step";
      is_folded[i] = true;
    }
    (*findings)[most].evidence.emplace_back("all_memories_bytes_a_step", all_a_step);
    (*findings)[most].facts.emplace_back("keeps_also", others);
  }
  erase_marked(is_folded, findings);
}

void fold_processes(const Tables& tables, const std::vector<HostRoom>* host_rooms,
                    std::vector<Finding>* findings) {
  using Bug = std::tuple<FindingKind, std::string, uint32_t, int8_t>;  // line, type of device
  std::map<Bug, std::vector<size_t>> alike;
  for (size_t i = 0; i < findings->size(); ++i) {
    const Finding& one = (*findings)[i];
    if (one.name.empty() || one.stack == 0 || one.device >= tables.devices.size()) continue;
    alike[{one.kind, one.name, tables.stacks.node(one.stack).frame,
           tables.devices[one.device].type}]
        .push_back(i);
  }
  std::vector<bool> is_folded(findings->size());
  for (const auto& [bug, places] : alike) {
    std::set<uint32_t> processes;
    uint64_t all_bytes = 0;
    for (const size_t i : places) {
      processes.insert(tables.devices[(*findings)[i].device].process);
      all_bytes += (*findings)[i].bytes.value_or(0);
    }
    if (places.size() == 1 || processes.size() < places.size()) continue;
    // The worst: a smaller device may be full sooner.
    const size_t worst = *std::ranges::max_element(places, {}, [&](size_t i) {
      return std::pair((*findings)[i].severity, (*findings)[i].bytes);
    });
    Finding& told = (*findings)[worst];
    told.evidence.emplace_back("processes", processes.size());
    told.evidence.emplace_back("all_processes_bytes", all_bytes);
    std::vector<Finding*> all;
    for (const size_t i : places) all.push_back(&(*findings)[i]);
    share_limit(all, tables, host_rooms, &told);
    for (const size_t i : places) {
      if (i == worst) continue;
      is_folded[i] = true;
      told.other_devices.push_back((*findings)[i].device);
    }
  }
  erase_marked(is_folded, findings);
}

}  // namespace gpumemprof

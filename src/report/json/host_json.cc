#include "report/json/sections.h"

#include <nlohmann/json.hpp>

#include "analysis/host/host_memories.h"
#include "analysis/host/host_moment_json.h"
#include "report/json/parts.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostProcesses = 256;

Json process_json(const HostProcess& process) {
  Json asked = Json::array();
  for (const HostMoment& said : process.asked) asked.push_back(said_moment_json(said));
  return {{"pid", process.pid},
          {"parent", process.parent != 0 ? Json(process.parent) : Json(nullptr)},
          {"program", text_or_null(process.program)},
          {"highest", host_moment_json(process.highest)},
          {"walked", process.walked ? host_moment_json(*process.walked) : Json(nullptr)},
          {"most_resident_bytes", process.most_resident_bytes},
          {"last_time_ns", process.last_time_ns},
          {"last_resident_bytes", process.last_resident_bytes},
          {"said", asked}};
}

Json sum_json(const std::optional<HostSum>& sum) {
  if (!sum) return nullptr;
  return {{"time_ns", sum->time_ns}, {"processes", sum->processes}, {"bytes", sum->bytes},
          {"samples", sum->samples}};
}

Json cgroup_json(const std::optional<CgroupMoment>& moment) {
  return moment ? cgroup_moment_json(*moment) : Json(nullptr);
}

Json run_json(const HostRun& run) {
  Json processes = Json::array();
  for (size_t i = 0; i < std::min(kMostProcesses, run.processes.size()); ++i)
    processes.push_back(process_json(run.processes[i]));
  return {{"host", text_or_null(run.host)},
          {"run_pid", run.run_pid},
          {"processes", processes},
          {"process_count", run.processes.size()},
          {"highest_resident", sum_json(run.highest_resident)},
          {"highest_proportional", sum_json(run.highest_proportional)},
          {"cgroup_highest", cgroup_json(run.cgroup_highest)},
          {"cgroup_last", cgroup_json(run.cgroup_last)},
          {"limit_hits", or_null(run.limit_hits)},
          {"kills", or_null(run.kills)}};
}

}  // namespace

nlohmann::ordered_json host_json(const Analysis& analysis) {
  if (!analysis.host) return nullptr;
  Json runs = Json::array();
  for (const HostRun& run : analysis.host->runs) runs.push_back(run_json(run));
  return {{"runs", runs}};
}

}  // namespace gpumemprof

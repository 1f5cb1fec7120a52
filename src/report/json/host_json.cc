#include "report/json/host_json.h"

#include <nlohmann/json.hpp>

#include "analysis/host/host_memories.h"
#include "report/json/parts.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostProcesses = 256;

void put(Json* out, const char* key, const HostTerm& term) {
  (*out)[key] = or_null(term.bytes);
  if (!term.bytes) (*out)["unknown"][key] = term.why;
}

Json moment_json(const HostMoment& moment) {
  const HostIdentity sum = host_identity(moment);
  Json out = {{"time_ns", moment.time_ns}, {"unknown", Json::object()}};
  put(&out, "resident_bytes", sum.resident);
  put(&out, "pinned_bytes", sum.pinned);
  put(&out, "other_shared_bytes", sum.shared);
  put(&out, "file_bytes", sum.file);
  put(&out, "malloc_live_bytes", sum.malloc_live);
  put(&out, "malloc_kept_bytes", sum.malloc_kept);
  put(&out, "python_arenas_bytes", sum.python_arenas);
  out["rest_bytes"] = or_null(sum.rest_bytes);
  put(&out, "anonymous_bytes", moment.anonymous);
  put(&out, "shared_bytes", moment.shared);
  put(&out, "swapped_bytes", moment.swapped);
  put(&out, "registered_bytes", moment.registered);
  put(&out, "proportional_bytes", moment.proportional);
  put(&out, "proportional_anonymous_bytes", moment.proportional_anonymous);
  put(&out, "proportional_file_bytes", moment.proportional_file);
  put(&out, "proportional_shared_bytes", moment.proportional_shared);
  put(&out, "private_clean_bytes", moment.private_clean);
  put(&out, "private_dirty_bytes", moment.private_dirty);
  put(&out, "locked_bytes", moment.locked);
  put(&out, "copied_file_bytes", moment.copied_file);
  out["most_copied_file"] = text_or_null(moment.most_copied_file);
  return out;
}

Json asked_json(const HostMoment& said) {
  return {{"time_ns", said.time_ns},
          {"resident_bytes", or_null(said.resident.bytes)},
          {"malloc_live_bytes", or_null(said.malloc_live.bytes)},
          {"malloc_kept_bytes", or_null(said.malloc_kept.bytes)}};
}

Json process_json(const HostProcess& process) {
  Json asked = Json::array();
  for (const HostMoment& said : process.asked) asked.push_back(asked_json(said));
  return {{"pid", process.pid},
          {"parent", process.parent != 0 ? Json(process.parent) : Json(nullptr)},
          {"program", text_or_null(process.program)},
          {"highest", moment_json(process.highest)},
          {"walked", process.walked ? moment_json(*process.walked) : Json(nullptr)},
          {"last_time_ns", process.last_time_ns},
          {"last_resident_bytes", process.last_resident_bytes},
          {"said", asked}};
}

Json sum_json(const std::optional<HostSum>& sum) {
  if (!sum) return nullptr;
  return {{"time_ns", sum->time_ns}, {"processes", sum->processes}, {"bytes", sum->bytes}};
}

Json cgroup_json(const std::optional<CgroupMoment>& moment) {
  if (!moment) return nullptr;
  Json out = {{"time_ns", moment->time_ns}, {"unknown", Json::object()}};
  put(&out, "limit_bytes", moment->limit);
  put(&out, "used_bytes", moment->used);
  put(&out, "anonymous_bytes", moment->anonymous);
  put(&out, "file_bytes", moment->file);
  put(&out, "shared_bytes", moment->shared);
  put(&out, "kernel_bytes", moment->kernel);
  out["rest_bytes"] = or_null(rest_of(*moment));
  put(&out, "reclaimable_bytes", moment->reclaimable);
  put(&out, "swapped_bytes", moment->swapped);
  return out;
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

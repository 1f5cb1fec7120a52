#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/driver/driver_moment_json.h"
#include "analysis/host/host_moment_json.h"
#include "picture/picture.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

/// A value, or null and an entry of the object's "unknown" that says why.
void put(Json* object, const char* key, const Quantity& quantity) {
  (*object)[key] = quantity ? Json(*quantity.bytes) : Json(nullptr);
  if (!quantity) (*object)["unknown"][key] = quantity.absent_because;
}

void put(Json* object, const char* key, const std::optional<double>& value, const char* why) {
  (*object)[key] = value ? Json(std::round(*value)) : Json(nullptr);
  if (!value) (*object)["unknown"][key] = why;
}

Json memory_json(const HostMemory& memory, const CgroupMoment& cgroup) {
  Json out = Json::object();
  put(&out, "total_bytes", memory.total);
  put(&out, "available_bytes", memory.available);
  put(&out, "used_bytes", memory.used);
  put(&out, "cgroup_limit_bytes", memory.limit);
  put(&out, "cgroup_used_bytes", memory.limit_used);
  out["cgroup"] = cgroup_moment_json(cgroup);
  return out;
}

Json accelerators_json(const PictureAccelerators& accelerators) {
  Json out = Json::object();
  if (!accelerators.absent_because.empty()) {
    out["devices"] = nullptr;
    out["unknown"]["devices"] = accelerators.absent_because;
    return out;
  }
  out["devices"] = Json::array();
  for (const PictureAccelerator& device : accelerators.devices) {
    Json& one = out["devices"].emplace_back(
        Json{{"device", device.name}, {"model", device.model}, {"uuid", device.uuid}});
    put(&one, "total_bytes", device.total);
    put(&one, "used_bytes", device.used);
    put(&one, "free_bytes", device.free);
    one["processes"] = Json::array();
    for (const auto& [pid, bytes] : device.by_pid)
      one["processes"].push_back({{"pid", pid}, {"used_bytes", bytes}});
  }
  return out;
}

Json device_json(const PictureDevice& device) {
  Json out = {{"device", device.name}, {"allocated_bytes", device.allocated}};
  put(&out, "reserved_bytes", device.reserved);
  out["peak_bytes"] = device.peak;
  out["live_blocks"] = device.live_blocks;
  out["alloc_count"] = device.alloc_count;
  out["free_count"] = device.free_count;
  out["refused_count"] = device.refused;
  const char* once = "a rate needs two samples";
  put(&out, "bytes_per_second", device.bytes_per_second, once);
  put(&out, "allocations_per_second", device.allocs_per_second, once);
  put(&out, "leak_bytes_per_second", device.leak_bytes_per_second, device.why_no_leak.c_str());
  // None is absent too where nothing is live, which is no unknown.
  const FollowedCategories& kinds = device.categories;
  out["categories"] = kinds.absent_because.empty() ? Json::array() : Json(nullptr);
  if (!kinds.absent_because.empty()) out["unknown"]["categories"] = kinds.absent_because;
  for (const FollowedCategory& kind : kinds.all) {
    out["categories"].push_back(
        {{"category", kind.name}, {"bytes", kind.bytes}, {"count", kind.count}});
  }
  out["holders"] = Json::array();
  for (const FollowedHolder& holder : device.holders) {
    out["holders"].push_back(
        {{"bytes", holder.bytes},
         {"count", holder.count},
         {"line", holder.line.empty() ? Json(nullptr) : Json(holder.line)},
         {"module", holder.module.empty() ? Json(nullptr) : Json(holder.module)},
         {"category", holder.category.empty() ? Json(nullptr) : Json(holder.category)},
         {"has_other_categories", holder.has_other_categories},
         {"stacks", holder.stacks},
         {"stack", holder.stack}});
  }
  return out;
}

std::string told(const std::string& command, Commands commands) {
  return commands == Commands::kWhole ? command : program_name(command);
}

Json driver_json(const PictureRecording& recording) {
  Json out = {{"devices", Json::array()},
              {"pinned_bytes", recording.pinned_bytes},
              {"registered_bytes", recording.registered_bytes}};
  for (const PictureSum& sum : recording.sums) {
    out["devices"].push_back(
        {{"device", sum.name},
         {"accelerator", sum.accelerator.empty() ? Json(nullptr) : Json(sum.accelerator)},
         {"refused_count", sum.refused},
         {"now", driver_moment_json(sum.moment)}});
  }
  return out;
}

Json recording_json(const PictureRecording& recording, Commands commands) {
  Json out = {{"pid", recording.pid},
              {"host", recording.host},
              {"command", told(recording.command, commands)},
              {"program", program_name(recording.command)},
              {"folder", recording.folder},
              {"rank", recording.rank ? Json(*recording.rank) : Json(nullptr)}};
  put(&out, "resident_bytes", recording.resident);
  out["host_memory"] = host_moment_json(recording.host_memory);
  out["age_seconds"] = recording.age_seconds;
  out["events"] = recording.events;
  out["lost_events"] = recording.lost_events;
  out["exact"] = recording.exact;
  if (!recording.exact) out["unknown"]["exact"] = recording.why_inexact;
  out["problem"] = recording.problem.empty() ? Json(nullptr) : Json(recording.problem);
  out["devices"] = Json::array();
  for (const PictureDevice& device : recording.devices)
    out["devices"].push_back(device_json(device));
  out["driver"] = recording.has_driver ? driver_json(recording) : Json(nullptr);
  return out;
}

}  // namespace

std::string picture_json(const Picture& picture, Commands commands, int indent) {
  Json out = {{"schema", "gpumemprof.live/1"},
              {"time_ns", picture.time_ns},
              {"host", picture.host},
              {"memory", memory_json(picture.memory, picture.cgroup)},
              {"accelerators", accelerators_json(picture.accelerators)},
              {"processes", Json::array()},
              {"recordings", Json::array()},
              {"alerts", Json::array()}};
  for (const PictureProcess& process : picture.processes) {
    Json one = {{"pid", process.pid},
                {"command", told(process.command, commands)},
                {"resident_bytes", process.resident_bytes},
                {"recorded", process.is_recorded}};
    if (process.accelerator_bytes) one["accelerator_bytes"] = *process.accelerator_bytes;
    out["processes"].push_back(std::move(one));
  }
  for (const PictureRecording& recording : picture.recordings)
    out["recordings"].push_back(recording_json(recording, commands));
  out["waiting"] = Json::array();
  for (const LiveRecording& run : picture.waiting)
    out["waiting"].push_back({{"pid", run.id.pid},
                              {"program", program_name(run.command)},
                              {"folder", run.folder}});
  for (const PictureAlert& alert : picture.alerts) {
    out["alerts"].push_back({{"time_ns", alert.time_ns},
                             {"level", alert.is_critical ? "critical" : "warning"},
                             {"subject", alert.subject},
                             {"text", alert.text}});
  }
  return out.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gpumemprof

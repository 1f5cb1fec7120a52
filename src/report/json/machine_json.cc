#include "report/json/sections.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/json/parts.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostPoints = 512, kMostRefusals = 64;

void put(Json* out, const char* key, const SampledBytes& value) {
  (*out)[key] = or_null(value.bytes);
  if (!value.bytes) (*out)["unknown"][key] = value.absent_because();
}

Json look_json(const UseAtLook& look) {
  Json out = {{"time_ns", look.time_ns}, {"unknown", Json::object()}};
  put(&out, "used_bytes", look.used);
  put(&out, "run_bytes", look.own);
  return out;
}

Json look_json(const std::optional<UseAtLook>& look) {
  return look ? look_json(*look) : Json(nullptr);
}

/// Keeps the maximum of each group of samples, so that no spike is lost.
Json timeline_json(const std::vector<UseAtLook>& looks) {
  Json times = Json::array(), used = Json::array(), own = Json::array();
  const size_t points = std::min(kMostPoints, looks.size());
  for (size_t i = 0; i < points; ++i) {
    const auto begin = looks.begin() + static_cast<std::ptrdiff_t>(looks.size() * i / points);
    const auto end = looks.begin() + static_cast<std::ptrdiff_t>(looks.size() * (i + 1) / points);
    const auto& highest = *std::max_element(begin, end, [](const auto& a, const auto& b) {
      return a.used.bytes.value_or(0) < b.used.bytes.value_or(0);
    });
    times.push_back(highest.time_ns);
    used.push_back(or_null(highest.used.bytes)), own.push_back(or_null(highest.own.bytes));
  }
  return {{"time_ns", times}, {"used_bytes", used}, {"run_bytes", own}};
}

Json memory_json(const MemoryUse& use) {
  Json out = {{"device", use.name},          {"name", text_or_null(use.model)},
              {"source", use.source},        {"run_pid", use.run_pid},
              {"samples", use.looks.size()}, {"unknown", Json::object()}};
  put(&out, "total_bytes", use.total);
  if (use.name == "host") put(&out, "limit_bytes", use.limit);
  out["highest"] = look_json(use.highest);
  out["highest_of_run"] = look_json(use.highest_own);
  out["at_peak"] = look_json(use.at_peak);
  out["at_refusals"] = Json::array();
  for (size_t i = 0; i < std::min(kMostRefusals, use.at_refusals.size()); ++i)
    out["at_refusals"].push_back(look_json(use.at_refusals[i]));
  out["timeline"] = timeline_json(use.looks);
  return out;
}

}  // namespace

Json machine_json(const DeviceUse& use) {
  Json devices = Json::array(), hosts = Json::array();
  for (const MemoryUse& one : use.devices) devices.push_back(memory_json(one));
  for (const MemoryUse& one : use.hosts) hosts.push_back(memory_json(one));
  return {{"samples", use.looks},
          {"missing_samples", use.missing_looks},
          {"first_time_ns", use.first_time_ns},
          {"last_time_ns", use.last_time_ns},
          {"devices", devices},
          {"no_devices_because", text_or_null(use.no_devices_because)},
          {"hosts", hosts}};
}

}  // namespace gpumemprof

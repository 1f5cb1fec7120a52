#include "report/json/sections.h"

#include <nlohmann/json.hpp>

#include "analysis/driver/driver_moment_json.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

nlohmann::ordered_json driver_json(const Analysis& analysis, const Tables& tables) {
  if (!analysis.driver) return nullptr;
  Json devices = Json::array(), hosts = Json::array();
  for (const DriverDevice& device : analysis.driver->devices) {
    devices.push_back(
        {{"device", driver_device_name(device)},
         {"process", process_at(tables, device.process).pid},
         {"process_index", device.process},
         {"refused_count", device.refused},
         {"peak", driver_moment_json(device.peak)},
         {"end", driver_moment_json(device.end)},
         {"asked", device.asked ? driver_moment_json(*device.asked) : Json(nullptr)},
         {"sampled", device.sampled ? driver_moment_json(*device.sampled) : Json(nullptr)}});
  }
  for (const DriverHost& host : analysis.driver->hosts) {
    hosts.push_back({{"process", process_at(tables, host.process).pid},
                     {"process_index", host.process},
                     {"pinned_bytes", host.pinned_bytes},
                     {"pinned_peak_bytes", host.pinned_peak_bytes},
                     {"registered_bytes", host.registered_bytes},
                     {"registered_peak_bytes", host.registered_peak_bytes}});
  }
  return {{"devices", devices}, {"hosts", hosts}};
}

}  // namespace gpumemprof

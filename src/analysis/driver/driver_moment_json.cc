#include "analysis/driver/driver_moment_json.h"

#include "base/json_fields.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

Json libraries_json(const DriverMoment& moment, bool of_framework) {
  Json out = Json::array();
  for (const DriverLibrary& library : moment.libraries) {
    if (library.is_framework == of_framework)
      out.push_back({{"name", library.name}, {"bytes", library.bytes}});
  }
  return out;
}

}  // namespace

nlohmann::ordered_json driver_moment_json(const DriverMoment& moment) {
  const auto& truth = moment.truth;
  const DeviceIdentity sum = identity_of(moment);
  Json by_kind = Json::object(), unknown = Json::object();
  for (size_t use = 0; use < kDriverUses; ++use) {
    const auto one = static_cast<DriverUse>(use);
    if (is_physical(one)) by_kind[kDriverKindNames[use]] = moment.of(one);
  }
  for (const auto& [term, why] : sum.unknown) unknown[term] = why;
  return {{"time_ns", moment.time_ns},
          {"event_index", moment.event},
          {"sample_time_ns", truth ? Json(truth->time_ns) : Json(nullptr)},
          {"device_used_bytes", or_null(sum.device_used_bytes)},
          {"reserved_bytes", or_null(sum.reserved_bytes)},
          {"other_processes_bytes", or_null(sum.others_bytes)},
          {"process_used_bytes", or_null(sum.process_bytes)},
          {"of_no_process_bytes", or_null(sum.of_no_process_bytes)},
          {"contexts_bytes", sum.contexts_are_known ? Json(sum.contexts_bytes) : Json(nullptr)},
          {"modules_bytes", sum.modules_bytes},
          {"estimates", {"contexts_bytes", "modules_bytes", "rounding_bytes", "by_kind.arrays"}},
          {"libraries", libraries_json(moment, false)},
          {"libraries_bytes", sum.libraries_bytes},
          {"rounding_bytes", sum.rounding_bytes},
          {"framework",
           {{"bytes", sum.framework_bytes},
            {"allocated_bytes", or_null(sum.framework_allocated_bytes)},
            {"cached_bytes", or_null(sum.framework_cached_bytes)},
            {"unservable_bytes", or_null(sum.framework_unservable_bytes)},
            {"beside_bytes", or_null(sum.framework_beside_bytes)},
            {"libraries", libraries_json(moment, true)}}},
          {"explained_bytes", sum.contexts_are_known ? Json(sum.explained_bytes()) : Json(nullptr)},
          {"unexplained_bytes", or_null(sum.unexplained_bytes)},
          {"others_and_unexplained_bytes", or_null(sum.others_and_unexplained_bytes)},
          {"contexts_and_unexplained_bytes", or_null(sum.contexts_and_unexplained_bytes)},
          {"by_kind", by_kind},
          {"beside",
           {{"managed_bytes", moment.of(DriverUse::kManaged)},
            {"imported_bytes", moment.of(DriverUse::kImported)},
            {"blocks_in_pools_bytes", moment.of(DriverUse::kInPools)},
            {"address_space_bytes", moment.of(DriverUse::kAddressSpace)},
            {"mapped_bytes", moment.of(DriverUse::kMapped)}}},
          {"unknown", unknown}};
}

}  // namespace gpumemprof

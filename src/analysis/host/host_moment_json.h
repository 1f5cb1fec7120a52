// Sums of host memory as JSON, the same in reports and in live pictures.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "analysis/host/host_identity.h"

namespace gpumemprof {

/// "host_moment" of docs/schemas/analysis.schema.json.
nlohmann::ordered_json host_moment_json(const HostMoment& moment);
/// "host_said" of it.
nlohmann::ordered_json said_moment_json(const HostMoment& moment);
/// "cgroup_moment" of it.
nlohmann::ordered_json cgroup_moment_json(const CgroupMoment& moment);

}  // namespace gpumemprof

#include "analysis/host/host_moment_json.h"

#include <span>

#include "base/json_fields.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

void put_term(Json* out, const char* key, const HostTerm& term) {
  (*out)[key] = or_null(term.bytes);
  if (!term.bytes) (*out)["unknown"][key] = term.why;
}

/// The sum, and what the kernel says of the pages in it.
Json host_sum_json(const HostMoment& moment) {
  const HostIdentity sum = host_identity(moment);
  Json out = {{"time_ns", moment.time_ns}, {"unknown", Json::object()}};
  put_term(&out, "resident_bytes", sum.resident);
  put_term(&out, "pinned_bytes", sum.pinned);
  put_term(&out, "other_shared_bytes", sum.shared);
  put_term(&out, "file_bytes", sum.file);
  put_term(&out, "malloc_live_bytes", sum.malloc_live);
  put_term(&out, "malloc_kept_bytes", sum.malloc_kept);
  put_term(&out, "python_arenas_bytes", sum.python_arenas);
  out["rest_bytes"] = or_null(sum.rest_bytes);
  put_term(&out, "anonymous_bytes", moment.anonymous);
  put_term(&out, "shared_bytes", moment.shared);
  return out;
}

}  // namespace

nlohmann::ordered_json said_moment_json(const HostMoment& moment) {
  Json out = host_sum_json(moment);
  put_term(&out, "pinned_used_bytes", moment.pinned_used);
  put_term(&out, "pinned_cache_bytes", moment.pinned_cache);
  return out;
}

nlohmann::ordered_json host_moment_json(const HostMoment& moment) {
  Json out = host_sum_json(moment);
  put_term(&out, "swapped_bytes", moment.swapped);
  put_term(&out, "registered_bytes", moment.registered);
  for (const auto& [key, term] : std::span(kHostTerms).subspan(kFirstOfWalk))
    put_term(&out, key, moment.*term);
  const std::string& file = moment.most_copied_file;
  out["most_copied_file"] = file.empty() ? Json(nullptr) : Json(file);
  return out;
}

nlohmann::ordered_json cgroup_moment_json(const CgroupMoment& moment) {
  Json out = {{"time_ns", moment.time_ns}, {"unknown", Json::object()}};
  put_term(&out, "limit_bytes", moment.limit);
  put_term(&out, "used_bytes", moment.used);
  put_term(&out, "anonymous_bytes", moment.anonymous);
  put_term(&out, "file_bytes", moment.file);
  put_term(&out, "shared_bytes", moment.shared);
  put_term(&out, "kernel_bytes", moment.kernel);
  out["rest_bytes"] = or_null(rest_of(moment));
  put_term(&out, "reclaimable_bytes", moment.reclaimable);
  put_term(&out, "swapped_bytes", moment.swapped);
  return out;
}

}  // namespace gpumemprof

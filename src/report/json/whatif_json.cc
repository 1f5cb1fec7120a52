#include <nlohmann/json.hpp>

#include "analysis/replay/settings_text.h"
#include "report/json/parts.h"
#include "report/whatif_report.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

Json release_names(const std::vector<Release>& releases) {
  Json out = Json::array();
  for (const Release& release : releases) out.push_back(release_name(release));
  return out;
}

Json row_json(const StudyRow& row) {
  const WhatIfResult& result = row.result;
  return {{"settings", row.settings},
          {"torch", release_name(row.release)},
          {"capacity_bytes", or_null(row.capacity_bytes)},
          {"peak_reserved_bytes", result.peak_reserved_bytes},
          {"end_reserved_bytes", result.end_reserved_bytes},
          {"segments", result.segments},
          {"num_alloc_retries", result.num_alloc_retries},
          {"num_ooms", result.num_ooms},
          {"first_oom_event_index", or_null(result.first_oom_event_index)},
          {"oom_before_first_event", result.oom_before_first_event},
          {"peak_reserved_event_index", or_null(result.peak_reserved_event)},
          {"peak_allocated_bytes", result.peak_allocated_bytes},
          {"peak_segments", result.peak_segments},
          {"fragmented_bytes_at_peak", result.fragmented_bytes_at_peak()},
          {"cached_bytes_at_peak", result.at_peak_reserved.releasable_bytes},
          {"cache_empties", result.cache_empties},
          {"retries_dropped", result.retries_dropped},
          {"from_sweep", row.from_sweep},
          {"keys_without_effect", row.keys_without_effect},
          {"least_memory_bytes", or_null(row.least_memory_bytes)},
          {"retries_at_least_memory",
           row.least_memory_bytes ? Json(row.retries_there) : Json()}};
}

Json best_json(const SettingsStudy& study) {
  const StudyRow* best = best_row(study);
  if (!best) return nullptr;
  return {{"result", static_cast<size_t>(best - study.rows.data())},
          {"variable", settings_variable(best->release)},
          {"value", best->settings},
          {"line", environment_line(study)}};
}

}  // namespace

std::string whatif_json(const SettingsStudy& study, const WhatIfSubject& subject) {
  const ReplayResult& replay = study.replay;
  Json results = Json::array();
  for (const StudyRow& row : study.rows) results.push_back(row_json(row));
  Json unknown = Json::object();
  if (!study.recorded_peak_reserved_bytes) {
    unknown["recorded.peak_reserved_bytes"] = "the trace and the segments contradict each other";
  }
  if (!study.room) {
    unknown["recorded.device_bytes"] = "only an out-of-memory event shows it";
  }
  const Json out = {
      {"schema", "gpumemprof.whatif/1"},
      {"source", {{"path", subject.path}, {"writer_version_hint", subject.version_hint}}},
      {"device", subject.device},
      {"replay",
       {{"alloc_addresses", replay.alloc_addresses},
        {"matched", replay.matched},
        {"share_matched", replay.share_matched()},
        {"first_mismatch_event", or_null(replay.first_mismatch_event)},
        {"torch", release_name(replay.release)},
        {"torch_was_searched", replay.release_was_searched},
        {"torch_equal", release_names(study.equal_releases)}}},
      {"recorded",
       {{"settings_known", study.settings_known},
        {"peak_reserved_bytes", or_null(study.recorded_peak_reserved_bytes)},
        {"live_before_bytes", study.live_before_bytes},
        {"device_bytes", study.room ? Json(study.room->bytes) : Json()},
        {"available", study.room ? room_json(*study.room) : Json()}}},
      {"results", results},
      {"best", best_json(study)},
      {"notes", whatif_limits(study)},
      {"unknown", unknown}};
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace gpumemprof

#include <cmath>
#include <nlohmann/json.hpp>

#include "report/json/parts.h"
#include "report/json/sections.h"
#include "report/text_report.h"

namespace gpumemprof {
namespace {

using Json = nlohmann::ordered_json;

Json count(double bytes) { return static_cast<uint64_t>(std::llround(std::max(bytes, 0.0))); }

Json evidence_json(const Evidence& evidence) {
  Json out = Json::object();
  for (const auto& [name, value] : evidence) {
    if (std::isfinite(value)) out[name] = value;
  }
  return out;
}

const char* fix_for(const std::string& type) {
  if (type == "monotonic_increase")
    return "record the program (gpumemprof run) and see what holds memory at the end";
  if (type == "spikes")
    return "record the program (gpumemprof run) and see what holds memory at the peak";
  return "delete what is no longer needed; if the rest is cache, call empty_cache()";
}

Json finding_json(const SeriesFinding& finding, size_t series) {
  return {{"kind", finding.type},
          {"severity", severity_name(finding.severity)},
          {"title", finding.description},
          {"bytes", count(finding.bytes)},
          {"confidence", finding.confidence},
          {"evidence", evidence_json(finding.evidence)},
          {"stack", Json::array()},
          {"fix", fix_for(finding.type)},
          {"series", series}};
}

Json series_json(const TelemetrySeries& series) {
  const SeriesReport& report = series.report;
  Json insights = Json::array(), unknown = Json::object();
  for (const SeriesInsight& insight : report.insights) {
    insights.push_back({{"category", insight.category},
                        {"description", insight.description},
                        {"evidence", evidence_json(insight.evidence)}});
  }
  for (const auto& [question, why] : report.unknown) unknown[question] = why;
  const bool any = report.samples > 0;
  const auto figure = [&](double bytes) { return any ? count(bytes) : Json(nullptr); };
  if (!any) unknown["allocated"] = "no sample was taken";
  if (!series.total_bytes) unknown["total_bytes"] = "the total of this memory is not in the file";
  if (!series.exact_peak_bytes) unknown["exact_peak_bytes"] = "only samples are in the file";
  if (!series.gap_bytes) unknown["gap_bytes"] = "device use and reserved bytes are not both known";
  Json gap = nullptr;
  if (series.gap_bytes)
    gap = {{"least", series.gap_bytes->first}, {"most", series.gap_bytes->second}};
  return {{"host", series.host},
          {"pid", series.pid},
          {"rank", series.rank},
          {"device_id", series.device_id},
          {"collector", series.collector},
          {"basis", series.basis},
          {"command", series.command},
          {"events", series.events},
          {"samples", report.samples},
          {"ignored_samples", report.ignored_samples},
          {"warmup_samples", report.warmup_samples},
          {"duration_s", report.duration_s},
          {"allocated",
           {{"first_bytes", figure(report.first_bytes)},
            {"last_bytes", figure(report.last_bytes)},
            {"least_bytes", figure(report.least_bytes)},
            {"mean_bytes", figure(report.mean_bytes)},
            {"highest_sample_bytes", figure(report.peak_bytes)},
            {"highest_sample_time_us",
             any ? Json(static_cast<int64_t>(std::llround(report.peak_time_s * 1e6)))
                 : Json(nullptr)}}},
          {"exact_peak_bytes", or_null(series.exact_peak_bytes)},
          {"peak_reserved_bytes", or_null(series.peak_reserved_bytes)},
          {"peak_used_bytes", or_null(series.peak_used_bytes)},
          {"total_bytes", or_null(series.total_bytes)},
          {"peak_used_share", or_null(series.peak_used_share)},
          {"gap_bytes", gap},
          {"warnings", series.warnings},
          {"criticals", series.criticals},
          {"ooms", series.ooms},
          {"patterns", patterns_json(report.patterns)},
          {"insights", insights},
          {"score", score_json(report.score)},
          {"unknown", unknown}};
}

}  // namespace

std::string telemetry_json_report(const TelemetryAnalysis& analysis) {
  Json series = Json::array(), findings = Json::array(), reasons = Json::array();
  for (size_t i = 0; i < analysis.series.size(); ++i) {
    series.push_back(series_json(analysis.series[i]));
    for (const SeriesFinding& finding : analysis.series[i].report.findings)
      findings.push_back(finding_json(finding, i));
  }
  for (const std::string& loss : analysis.losses)
    reasons.push_back({{"reason", loss}, {"events", nullptr}});
  const Json out = {{"schema", "gpumemprof.analysis/1"},
                    {"source",
                     {{"path", analysis.path},
                      {"kind", "telemetry"},
                      {"format", analysis.kind},
                      {"bytes", analysis.file_bytes},
                      {"writer_version_hint", ""},
                      {"events", analysis.events},
                      {"events_read", analysis.events},
                      {"samples", analysis.samples},
                      {"start_ns", std::max<int64_t>(analysis.start_ns, 0)},
                      {"end_ns", std::max<int64_t>(analysis.end_ns, 0)}}},
                    {"devices", Json::array()},
                    {"processes", Json::array()},
                    {"threads", Json::array()},
                    {"series", series},
                    {"findings", findings},
                    {"notes", analysis.notes},
                    {"lost", {{"events", 0}, {"bytes", analysis.lost_bytes}, {"reasons", reasons}}},
                    {"score", score_json(analysis.score)}};
  return out.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace gpumemprof

#include "native/bindings.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <vector>

#include "analysis/series/series.h"

namespace nb = nanobind;

namespace gpumemprof::python {
namespace {

std::vector<double> numbers(const nb::sequence& values) {
  std::vector<double> result;
  result.reserve(nb::len(values));
  for (nb::handle value : values) result.push_back(nb::cast<double>(value));
  return result;
}

nb::dict figures(const Evidence& evidence) {
  nb::dict result;
  for (const auto& [name, value] : evidence) result[name.c_str()] = value;
  return result;
}

nb::dict reasons(const std::vector<std::pair<std::string, std::string>>& unknown) {
  nb::dict result;
  for (const auto& [question, why] : unknown) result[question.c_str()] = why;
  return result;
}

nb::dict finding_dict(const SeriesFinding& finding) {
  nb::dict result;
  result["type"] = finding.type;
  result["severity"] = severity_name(finding.severity);
  result["description"] = finding.description;
  result["bytes"] = finding.bytes;
  result["confidence"] = finding.confidence;
  result["evidence"] = figures(finding.evidence);
  return result;
}

nb::dict pattern_dict(const SeriesPattern& pattern) {
  nb::dict result;
  result["pattern_type"] = pattern.pattern_type;
  result["severity"] = severity_name(pattern.severity);
  result["description"] = pattern.description;
  result["evidence"] = figures(pattern.evidence);
  return result;
}

nb::dict insight_dict(const SeriesInsight& insight) {
  nb::dict result;
  result["category"] = insight.category;
  result["description"] = insight.description;
  result["evidence"] = figures(insight.evidence);
  return result;
}

nb::dict part_dict(const ScorePart& part) {
  nb::dict result;
  result["name"] = part.name;
  result["weight"] = part.weight;
  result["value"] = part.value;
  result["reason"] = part.reason;
  return result;
}

template <class Items, class Function>
nb::list list_of(const Items& items, Function function) {
  nb::list result;
  for (const auto& item : items) result.append(function(item));
  return result;
}

nb::dict score_dict(const Score& score) {
  nb::dict result;
  result["value"] = score.value;
  result["reason"] = score.reason;
  result["hides_growth"] = score.hides_growth;
  result["parts"] = list_of(score.parts, part_dict);
  return result;
}

nb::dict series_report(const nb::sequence& times_s, const nb::sequence& bytes, double sensitivity,
                       std::optional<double> limit_bytes, std::optional<double> free_bytes,
                       std::optional<double> largest_free_block_bytes) {
  const std::vector<double> times = numbers(times_s), values = numbers(bytes);
  SeriesOptions options{.sensitivity = sensitivity, .limit_bytes = limit_bytes, .free_blocks = {}};
  if (free_bytes && largest_free_block_bytes)
    options.free_blocks = FreeBlocks{*free_bytes, *largest_free_block_bytes};
  SeriesReport report;
  {
    nb::gil_scoped_release release;
    report = analyze_series(times, values, options);
  }
  nb::dict result;
  result["samples"] = report.samples;
  result["ignored_samples"] = report.ignored_samples;
  result["warmup_samples"] = report.warmup_samples;
  result["duration_s"] = report.duration_s;
  result["first_bytes"] = report.first_bytes;
  result["last_bytes"] = report.last_bytes;
  result["least_bytes"] = report.least_bytes;
  result["peak_bytes"] = report.peak_bytes;
  result["mean_bytes"] = report.mean_bytes;
  result["peak_time_s"] = report.peak_time_s;
  result["findings"] = list_of(report.findings, finding_dict);
  result["patterns"] = list_of(report.patterns, pattern_dict);
  result["insights"] = list_of(report.insights, insight_dict);
  result["score"] = score_dict(report.score);
  result["unknown"] = reasons(report.unknown);
  return result;
}

/// ValueError where the two sequences differ in length or times go backwards.
nb::dict limit_forecast(const nb::sequence& times_s, const nb::sequence& bytes,
                        std::optional<double> limit_bytes) {
  const std::vector<double> times = numbers(times_s), values = numbers(bytes);
  if (times.size() != values.size()) {
    throw nb::value_error((std::to_string(times.size()) + " times for " +
                           std::to_string(values.size()) + " values")
                              .c_str());
  }
  if (!std::ranges::is_sorted(times)) throw nb::value_error("times must ascend");
  Forecast forecast;
  {
    nb::gil_scoped_release release;
    forecast = forecast_limit(times, values, limit_bytes);
  }
  nb::dict result;
  result["seconds_to_limit"] = forecast.seconds_to_limit;
  result["seconds_to_limit_earliest"] = forecast.earliest_s;
  result["seconds_to_limit_latest"] = forecast.latest_s;
  result["growth_bytes_per_s"] = forecast.bytes_per_second;
  result["points"] = forecast.points;
  result["window_s"] = forecast.window_s;
  result["reason"] = forecast.reason.empty() ? std::nullopt : std::optional(forecast.reason);
  return result;
}

}  // namespace

void bind_series(nb::module_& module) {
  module.def("analyze_series", &series_report, nb::arg("times_s"), nb::arg("values_bytes"),
             nb::arg("sensitivity") = 0.05, nb::kw_only(), nb::arg("limit_bytes") = nb::none(),
             nb::arg("free_bytes") = nb::none(), nb::arg("largest_free_block_bytes") = nb::none());
  module.def("forecast_limit", &limit_forecast, nb::arg("times_s"), nb::arg("values_bytes"),
             nb::arg("limit_bytes").none());
}

}  // namespace gpumemprof::python

// The analysis of a series of samples, as Python's dicts and lists.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

namespace gpumemprof::python {

/// analyze_series of analysis/series/series.h: keys are the members' names; an absent value is None.
nanobind::dict series_report(const nanobind::sequence& times_s, const nanobind::sequence& bytes,
                             double sensitivity, std::optional<double> limit_bytes,
                             std::optional<double> free_bytes,
                             std::optional<double> largest_free_block_bytes);

/// forecast_limit of analysis/series/series.h. ValueError where the two sequences differ in
/// length or times go backwards.
nanobind::dict limit_forecast(const nanobind::sequence& times_s, const nanobind::sequence& bytes,
                              std::optional<double> limit_bytes);

}  // namespace gpumemprof::python

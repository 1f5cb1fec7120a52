// Metrics for Prometheus.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "serve/metric_families.h"

namespace gpumemprof {

enum class MetricsFormat { kPrometheus, kOpenMetrics };

/// What the field Accept of a scrape asks for: OpenMetrics 1.0 where it is named, else Prometheus'
/// text format 0.0.4.
MetricsFormat metrics_format(std::string_view accept);
std::string metrics_type(MetricsFormat format);  ///< the Content-Type

/// The whole exposition of metric_families(). Both formats as their specifications of 2014 (0.0.4)
/// and 2020 (OpenMetrics 1.0) want them.
std::string metrics_text(const std::vector<MetricFamily>& families, MetricsFormat format);

}  // namespace gpumemprof

#include "serve/metrics_text.h"

#include <fmt/format.h>

#include "report/words.h"

namespace gpumemprof {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string sample_line(const MetricFamily& family, const MetricSample& sample) {
  std::string out(family.name);
  if (family.kind == MetricKind::kCounter) out += "_total";
  char before = '{';
  for (const auto& [label, text] : sample.labels) {
    out += fmt::format("{}{}=\"{}\"", before, label, escaped(text));
    before = ',';
  }
  if (before == ',') out += '}';
  return std::visit([&](auto value) { return fmt::format("{} {}\n", out, value); }, sample.value);
}

}  // namespace

MetricsFormat metrics_format(std::string_view accept) {
  return accept.find("application/openmetrics-text") != accept.npos ? MetricsFormat::kOpenMetrics
                                                                    : MetricsFormat::kPrometheus;
}

std::string metrics_type(MetricsFormat format) {
  return format == MetricsFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

/// Samples of a family come together, as both formats want.
std::string metrics_text(const std::vector<MetricFamily>& families, MetricsFormat format) {
  const bool is_open = format == MetricsFormat::kOpenMetrics;
  std::string out;
  for (const MetricFamily& family : families) {
    const bool is_counter = family.kind == MetricKind::kCounter;
    // Prometheus' own format names a counter with its suffix, OpenMetrics without.
    const std::string name = std::string(family.name) + (is_counter && !is_open ? "_total" : "");
    out += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, family.help, name,
                       is_counter ? "counter" : "gauge");
    if (is_open && !family.unit.empty()) out += fmt::format("# UNIT {} {}\n", name, family.unit);
    for (const MetricSample& sample : family.samples) out += sample_line(family, sample);
  }
  if (is_open) out += "# EOF\n";
  return out;
}

}  // namespace gpumemprof

// The answer first: how good, how high, what is wrong; then a block a series.
#include <fmt/format.h>

#include <cmath>

#include "base/size.h"
#include "report/score_report.h"
#include "report/series_svg.h"
#include "report/telemetry_report.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostSeries = 32;

std::string size(double bytes) { return format_bytes(static_cast<uint64_t>(bytes)); }

std::string duration(double seconds) {
  return format_duration(static_cast<uint64_t>(std::llround(seconds * 1e9)));
}

std::string findings_text(const TelemetryAnalysis& analysis) {
  std::string out;
  size_t count = 0;
  for (const TelemetrySeries& series : analysis.series) {
    for (const SeriesFinding& finding : series.report.findings) {
      ++count;
      out += fmt::format("  {:<8} {}: {} [{}]\n", severity_name(finding.severity), finding.type,
                         finding.description, printable(series_label(series)));
    }
  }
  return count == 0 ? "Findings: none.\n" : fmt::format("Findings: {}\n{}", count, out);
}

std::string series_text(const TelemetrySeries& series) {
  const SeriesReport& report = series.report;
  std::string out = '\n' + printable(series_label(series));
  if (!series.command.empty()) out += ": " + printable(series.command);
  out += '\n';
  if (report.samples == 0) return out + "  no sample\n";
  out += fmt::format("  {} in {}; first {}, last {}, mean {}, least {}\n",
                     format_plural(report.samples, "sample"), duration(report.duration_s),
                     size(report.first_bytes), size(report.last_bytes), size(report.mean_bytes),
                     size(report.least_bytes));
  out += fmt::format("  highest sample {}, {} after the first", size(report.peak_bytes),
                     duration(report.peak_time_s -
                              *std::min_element(series.times_s.begin(), series.times_s.end())));
  if (series.exact_peak_bytes)
    out += fmt::format("; exact peak {}", format_bytes(*series.exact_peak_bytes));
  out += '\n';
  if (series.total_bytes && series.peak_used_share) {
    out += fmt::format("  at most {:.1f} % of {} in use\n", 100 * *series.peak_used_share,
                       format_bytes(*series.total_bytes));
  }
  if (series.gap_bytes) {
    out += fmt::format("  used on the device beyond what was reserved: {:.0f} to {:.0f} MiB\n",
                       series.gap_bytes->first / 1048576, series.gap_bytes->second / 1048576);
  }
  if (series.warnings + series.criticals > 0) {
    out += fmt::format("  alerts: {} warning, {} critical\n", series.warnings, series.criticals);
  }
  for (const SeriesPattern& pattern : report.patterns) {
    out += fmt::format("  pattern {}: {}\n", pattern.pattern_type, pattern.description);
  }
  for (const SeriesInsight& insight : report.insights) out += "  " + insight.description + ".\n";
  for (const auto& [question, why] : report.unknown) {
    out += fmt::format("  unknown: {}, because {}\n", question, why);
  }
  return out;
}

}  // namespace

std::string telemetry_text(const TelemetryAnalysis& analysis) {
  std::string out = fmt::format("Analyzing profiling results from: {}\n", printable(analysis.path));
  out += fmt::format(
      "{}, {}, {}, {}\n", analysis.kind, format_bytes(analysis.file_bytes),
      format_plural(analysis.events, "event"),
      analysis.events == 0
          ? "no time"
          : duration(static_cast<double>(analysis.end_ns - analysis.start_ns) * 1e-9) + " long");
  out += score_sentence(analysis.score) + "\n";
  out += findings_text(analysis);
  if (analysis.losses.empty()) out += "Nothing was lost.\n";
  for (const std::string& loss : analysis.losses) out += "LOST: " + loss + ".\n";
  for (const std::string& note : analysis.notes) out += "Note: " + note + ".\n";
  size_t shown = 0;
  for (const TelemetrySeries& series : analysis.series) {
    if (shown++ == kMostSeries) {
      out += fmt::format("\n{} more series: see --format json\n",
                         analysis.series.size() - kMostSeries);
      break;
    }
    out += series_text(series);
  }
  return out;
}

}  // namespace gpumemprof

// The report of samples: score, peak, findings; then one section per series.
#include <fmt/format.h>

#include <algorithm>

#include "base/duration.h"
#include "base/size.h"
#include "report/describe/describe.h"
#include "report/describe/facts.h"
#include "report/describe/sections.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostSeries = 32;

std::string size_text(double bytes) { return format_bytes(static_cast<uint64_t>(bytes)); }

std::string series_label(const TelemetrySeries& series) {
  std::string text = series.pid > 0 ? "process " + std::to_string(series.pid) + ", " : "";
  if (series.rank > 0) text += "rank " + std::to_string(series.rank) + ", ";
  text += series.device_id >= 0 ? "device " + std::to_string(series.device_id) : "cpu";
  if (!series.basis.empty()) text += " (" + series.basis + ')';
  return text;
}

Section samples_answer(const TelemetryAnalysis& analysis) {
  Section out;
  out.add(Sentence{"Analyzing profiling results from: " + analysis.path, Tone::kHeadline});
  out.add(Sentence{fmt::format(
      "{}, {}, {}, {}", analysis.kind, format_bytes(analysis.file_bytes),
      format_plural(analysis.events, "event"),
      analysis.events == 0
          ? "no time"
          : format_seconds(static_cast<double>(analysis.end_ns - analysis.start_ns) * 1e-9) +
                " long")});
  out.add(Sentence{score_sentence(analysis.score)});
  if (analysis.losses.empty()) out.add(Sentence{"Nothing was lost."});
  for (const std::string& loss : analysis.losses) out.add(Sentence{loss + ".", Tone::kBad, "LOST"});
  for (const std::string& note : analysis.notes)
    out.add(Sentence{note + ".", Tone::kWarning, "Note"});
  return out;
}

Section samples_findings(const TelemetryAnalysis& analysis) {
  Section out{"Findings"};
  List list{.label_width = 8};
  for (const TelemetrySeries& series : analysis.series) {
    for (const SeriesFinding& finding : series.report.findings) {
      list.items.push_back(
          {.label = severity_name(finding.severity),
           .text = fmt::format("{}: {} [{}]", finding.type, finding.description,
                               series_label(series)),
           .tone = tone_of(finding.severity)});
    }
  }
  if (list.items.empty()) {
    out.add(Sentence{"none"});
  } else {
    out.add(std::move(list));
  }
  return out;
}

std::string highest_text(const TelemetrySeries& series) {
  const SeriesReport& report = series.report;
  std::string text =
      fmt::format("highest sample {}, {} after the first", size_text(report.peak_bytes),
                  format_seconds(report.peak_time_s - *std::ranges::min_element(series.times_s)));
  if (series.exact_peak_bytes)
    text += fmt::format("; exact peak {}", format_bytes(*series.exact_peak_bytes));
  return text;
}

Section series_section(const TelemetrySeries& series) {
  const SeriesReport& report = series.report;
  Section out{series_label(series)};
  std::string command = series.command;
  std::ranges::replace(command, '\n', ' ');  // of python -c
  if (!command.empty()) out.title += ": " + command;
  if (report.samples == 0) {
    out.add(Sentence{"no sample"});
    return out;
  }
  Chart chart{.title = command.empty() ? series_label(series) : command,
              .lines = {chart_line("allocated", series.times_s, series.allocated_bytes)},
              .limit_bytes = series.total_bytes};
  if (series.reserved_bytes != series.allocated_bytes) {
    chart.lines.push_back(chart_line("reserved", series.reserved_times_s, series.reserved_bytes));
  }
  out.add(std::move(chart));
  List list;
  const auto add = [&](std::string text) { list.items.push_back({"", std::move(text)}); };
  add(fmt::format("{} in {}; first {}, last {}, mean {}, minimum {}",
                  format_plural(report.samples, "sample"), format_seconds(report.duration_s),
                  size_text(report.first_bytes), size_text(report.last_bytes),
                  size_text(report.mean_bytes), size_text(report.least_bytes)));
  add(highest_text(series));
  if (series.total_bytes && series.peak_used_share) {
    add(fmt::format("{} at most {:.1f} % of {}",
                    series.peak_used_bytes ? "all processes use" : "allocated or reserved",
                    100 * *series.peak_used_share, format_bytes(*series.total_bytes)));
  }
  if (series.gap_bytes) {
    add(fmt::format("device use beyond the reserved bytes: {:.0f} to {:.0f} MiB",
                    series.gap_bytes->first / 1048576, series.gap_bytes->second / 1048576));
  }
  if (series.warnings + series.criticals > 0)
    add(fmt::format("alerts: {} warning, {} critical", series.warnings, series.criticals));
  for (const SeriesPattern& pattern : report.patterns)
    add(fmt::format("pattern {}: {}", pattern.pattern_type, pattern.description));
  for (const SeriesInsight& insight : report.insights) add(insight.description + ".");
  for (const auto& [question, why] : report.unknown)
    add(fmt::format("unknown: {}, because {}", question, why));
  out.add(std::move(list));
  return out;
}

}  // namespace

Document describe_samples(const TelemetryAnalysis& analysis) {
  Document out{.title = "gpumemprof: " + analysis.path};
  out.add(samples_answer(analysis));
  out.add(samples_findings(analysis));
  const size_t shown = std::min(kMostSeries, analysis.series.size());
  for (size_t i = 0; i < shown; ++i) out.add(series_section(analysis.series[i]));
  if (analysis.series.size() > shown) {
    Section more;
    more.add(
        Sentence{fmt::format("{} more series: see --format json", analysis.series.size() - shown),
                 Tone::kDim});
    out.add(std::move(more));
  }
  return out;
}

}  // namespace gpumemprof

#include "report/render/series_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/size.h"
#include "report/render/timeline_svg.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr double kSeriesWidth = 960, kSeriesHeight = 420;
constexpr double kLeft = 84, kRight = 24, kTop = 56, kBottom = 48;
constexpr double kPlotWidth = kSeriesWidth - kLeft - kRight,
                 kPlotHeight = kSeriesHeight - kTop - kBottom;
constexpr size_t kColumns = 440;  // about two pixels each

struct Axes {
  double start_s, span_s;
  double top_bytes;
  double x(double time_s) const {
    return kLeft + (span_s > 0 ? kPlotWidth * (time_s - start_s) / span_s : kPlotWidth / 2);
  }
  double y(double bytes) const { return kTop + kPlotHeight * (1 - bytes / top_bytes); }
};

struct Point {
  double time_s, bytes;
};

/// In the order of time; of many points in one column the first, least, most and last.
std::vector<Point> thinned(const std::vector<double>& times, const std::vector<double>& bytes,
                           const Axes& axes) {
  std::vector<Point> points;
  for (size_t i = 0; i < std::min(times.size(), bytes.size()); ++i)
    points.push_back({times[i], bytes[i]});
  std::ranges::stable_sort(points, {}, &Point::time_s);
  if (points.size() <= 2 * kColumns) return points;
  const auto column = [&](const Point& p) {
    return static_cast<size_t>((axes.x(p.time_s) - kLeft) / kPlotWidth * kColumns);
  };
  std::vector<Point> out;
  for (size_t from = 0; from < points.size();) {
    size_t to = from, least = from, most = from;
    for (; to < points.size() && column(points[to]) == column(points[from]); ++to) {
      if (points[to].bytes < points[least].bytes) least = to;
      if (points[to].bytes > points[most].bytes) most = to;
    }
    std::vector<size_t> chosen = {from, std::min(least, most), std::max(least, most), to - 1};
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    for (size_t i : chosen) out.push_back(points[i]);
    from = to;
  }
  return out;
}

std::string polyline(const std::vector<Point>& points, const Axes& axes, const char* style) {
  std::string path;
  for (const Point& point : points) {
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", axes.x(point.time_s),
                        axes.y(point.bytes));
  }
  // One sample is a dot: a path without a length would not be seen.
  if (points.size() == 1) path += "h0.1";
  return fmt::format(R"(<path d="{}" {}/>)", path, style) + '\n';
}

std::string words(double x, double y, const char* anchor, const std::string& text,
                  const char* more = "") {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" text-anchor="{}" {}>{}</text>)", x, y, anchor,
                     more, html_text(text)) +
         '\n';
}

std::string grid(const Axes& axes) {
  std::string out;
  for (int i = 0; i <= 4; ++i) {
    const double bytes = axes.top_bytes * i / 4, y = axes.y(bytes);
    out += fmt::format(R"(<path class="grid" d="M{:.1f},{:.1f}H{:.1f}"/>)", kLeft, y,
                       kLeft + kPlotWidth);
    out += words(kLeft - 8, y + 4, "end", format_bytes(static_cast<uint64_t>(bytes)));
  }
  for (int i = 0; i <= 4 && axes.span_s > 0; ++i) {
    const double x = kLeft + kPlotWidth * i / 4;
    out += words(x, kTop + kPlotHeight + 20, "middle",
                 format_duration(static_cast<uint64_t>(axes.span_s * 2.5e8 * i)));
  }
  return out +
         words(kLeft + kPlotWidth / 2, kSeriesHeight - 8, "middle", "time after the first sample");
}

}  // namespace

std::string series_label(const TelemetrySeries& series) {
  std::string text = series.pid > 0 ? "process " + std::to_string(series.pid) + ", " : "";
  if (series.rank > 0) text += "rank " + std::to_string(series.rank) + ", ";
  text += series.device_id >= 0 ? "device " + std::to_string(series.device_id) : "cpu";
  if (!series.basis.empty()) text += " (" + series.basis + ')';
  return text;
}

std::string series_svg(const TelemetrySeries& series, const std::string& title) {
  const SeriesReport& report = series.report;
  const double highest =
      std::max(report.peak_bytes, static_cast<double>(series.peak_reserved_bytes.value_or(0)));
  double start = 0;
  if (!series.times_s.empty()) start = *std::ranges::min_element(series.times_s);
  const Axes axes{start, report.duration_s,
                  static_cast<double>(axis_top(static_cast<uint64_t>(std::max(highest, 1.0))))};
  std::string body = grid(axes);
  if (series.reserved_bytes != series.allocated_bytes) {
    body += polyline(thinned(series.reserved_times_s, series.reserved_bytes, axes), axes,
                     R"(class="reserved")");
    body += words(kLeft + kPlotWidth, kTop - 8, "end", "dashed: reserved");
  }
  body +=
      polyline(thinned(series.times_s, series.allocated_bytes, axes), axes, R"(class="allocated")");
  if (report.samples == 0) {
    body += words(kLeft + kPlotWidth / 2, kTop + kPlotHeight / 2, "middle", "no sample was taken");
  } else {
    const double x = axes.x(report.peak_time_s), y = axes.y(report.peak_bytes);
    body += fmt::format(R"(<circle class="peak" cx="{:.1f}" cy="{:.1f}" r="4"/>)", x, y);
    // Between two samples there may have been more, unless somebody counted.
    const bool is_peak = series.exact_peak_bytes &&
                         static_cast<double>(*series.exact_peak_bytes) == report.peak_bytes;
    const bool right = x > kLeft + kPlotWidth / 2;
    body += words(x + (right ? -8 : 8), std::max(y - 8, kTop + 12), right ? "end" : "start",
                  (is_peak ? "peak " : "highest sample ") +
                      format_bytes(static_cast<uint64_t>(report.peak_bytes)),
                  R"(class="strong")");
  }
  std::string below = series_label(series);
  for (const SeriesFinding& finding : report.findings) below += "; " + finding.type;
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n<style>"
      "text{{font:13px "
      "system-ui,sans-serif;fill:#59636e}}.strong{{fill:#1b1f24;stroke:#fff;stroke-width:4;paint-"
      "order:stroke}}"
      ".head{{font-size:16px;fill:#1b1f24}}.grid{{stroke:#d8dee4;fill:none}}"
      ".allocated{{fill:none;stroke:#1f5fbf;stroke-width:1.8;stroke-linejoin:round;"
      "stroke-linecap:round}}"
      ".reserved{{fill:none;stroke:#b8651b;stroke-width:1.5;stroke-dasharray:5 4}}"
      ".peak{{fill:#c4320a}}</style>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{3}{4}{5}</svg>\n",
      kSeriesWidth, kSeriesHeight, html_text(title),
      words(kLeft, 22, "start", title, R"(class="head")"), words(kLeft, 42, "start", below), body);
}

}  // namespace gpumemprof

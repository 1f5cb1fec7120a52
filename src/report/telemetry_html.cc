// The same words as the text report with a picture a series: one page that loads nothing.
#include <fmt/format.h>

#include "report/html_style.h"
#include "report/series_svg.h"
#include "report/telemetry_report.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostPictures = 32;

}  // namespace

std::string telemetry_html(const TelemetryAnalysis& analysis) {
  std::string pictures;
  for (size_t i = 0; i < std::min(analysis.series.size(), kMostPictures); ++i) {
    const TelemetrySeries& series = analysis.series[i];
    pictures += "<figure class=\"scroll\">" +
                series_svg(series, series.command.empty() ? series_label(series) : series.command) +
                "</figure>\n";
  }
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<title>gpumemprof: {0}</title><style>{1}figure svg{{height:auto}}"
      "</style></head><body>\n<h1>gpumemprof: {0}</h1>\n{2}<pre>{3}</pre>\n</body></html>\n",
      html_text(analysis.path), kHtmlStyle, pictures, html_lines(telemetry_text(analysis)));
}

}  // namespace gpumemprof

#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "report/diff_report.h"
#include "report/render/timeline_svg.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr double kDiffWidth = 1000;
constexpr double kDiffHeight = 240;

/// When a run's timeline begins and ends, after the run's own start.
struct Span {
  uint64_t begin_ns = 0, end_ns = 0;
};

Span span_of(const DiffSide& side) {
  if (side.device == nullptr) return {};
  const Timeline& timeline = side.device->timeline;
  const uint64_t start = std::min(side.analysis->start_time_ns, timeline.start_ns());
  const uint64_t begin = timeline.start_ns() - start;
  return {begin, begin + timeline.buckets().size() * timeline.bucket_ns()};
}

uint64_t highest(const DiffSide& side) {
  uint64_t bytes = 0;
  if (side.device == nullptr) return bytes;
  for (const TimelineBucket& bucket : side.device->timeline.buckets()) {
    bytes = std::max(bytes, bucket.max_bytes);
  }
  return bytes;
}

/// The most of every bucket, as a staircase; a run that ends earlier simply stops.
std::string curve(const DiffSide& side, uint64_t whole_ns, uint64_t top_bytes) {
  if (side.device == nullptr) return "";
  const Timeline& timeline = side.device->timeline;
  const double scale = kDiffWidth / static_cast<double>(whole_ns);
  const double step = static_cast<double>(timeline.bucket_ns()) * scale;
  double x = static_cast<double>(span_of(side).begin_ns) * scale;
  std::string path;
  for (const TimelineBucket& bucket : timeline.buckets()) {
    const double y = kDiffHeight - kDiffHeight * static_cast<double>(bucket.max_bytes) /
                                       static_cast<double>(top_bytes);
    path += fmt::format("{}{:.1f},{:.1f}H{:.1f}", path.empty() ? "M" : "L", x, y, x + step);
    x += step;
  }
  return path;
}

std::string legend(const char* css, const char* name, const DiffSide& side) {
  const uint64_t peak = side.device == nullptr ? 0 : side.device->figures.peak_bytes;
  return fmt::format("<span><i class=\"{}\"></i> {}: {}, peak {}</span>", css, name,
                     html_text(side.analysis->source.path), format_bytes(peak));
}

}  // namespace

std::string diff_figure(const Diff& diff) {
  const uint64_t whole_ns = std::max(span_of(diff.a).end_ns, span_of(diff.b).end_ns);
  if (whole_ns == 0) return "<p>No event to draw.</p>\n";
  const uint64_t top = axis_top(std::max(highest(diff.a), highest(diff.b)));
  std::string labels, grid;
  for (int i = 0; i <= kGridLines; ++i) {
    grid +=
        fmt::format(R"(<path d="M0,{:.0f}H{:.0f}"/>)", kDiffHeight * i / kGridLines, kDiffWidth);
    labels += fmt::format("<span>{}</span>",
                          format_bytes(static_cast<uint64_t>(static_cast<double>(top) *
                                                             (kGridLines - i) / kGridLines)));
  }
  const bool has_times = diff.a.analysis->source.can.times && diff.b.analysis->source.can.times;
  const std::string end = has_times ? format_duration(whole_ns) : std::string("end");
  return fmt::format(
      "<p class=\"legend\">{}{}</p>\n<figure><div class=\"plot\"><div class=\"y\">{}</div><div "
      "class=\"area\"><svg viewBox=\"0 0 {:.0f} {:.0f}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"Live bytes of both runs over time\"><g class=\"grid\">{}</g><path class=\"a\" "
      "d=\"{}\"/><path class=\"b\" d=\"{}\"/></svg></div></div><figcaption><span>0</span><span>{}; "
      "the maximum of each step</span><span>{}</span></figcaption></figure>\n",
      legend("a", "A", diff.a), legend("b", "B", diff.b), labels, kDiffWidth, kDiffHeight, grid,
      curve(diff.a, whole_ns, top), curve(diff.b, whole_ns, top),
      has_times ? "time after each run's start" : "in order of events (no times were recorded)",
      end);
}

}  // namespace gpumemprof

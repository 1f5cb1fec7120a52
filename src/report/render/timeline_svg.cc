#include "report/render/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/size.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr double kTimelineWidth = 1000;
constexpr double kTimelineHeight = 240;

double y_of(uint64_t bytes, uint64_t top) {
  return kTimelineHeight - kTimelineHeight * static_cast<double>(bytes) / static_cast<double>(top);
}

/// A staircase over the buckets, from left to right.
std::string staircase(const std::vector<TimelineBucket>& buckets, uint64_t TimelineBucket::* level,
                      double step, uint64_t top) {
  std::string path;
  for (size_t i = 0; i < buckets.size(); ++i) {
    path += fmt::format("{}{:.1f},{:.1f}H{:.1f}", i == 0 ? "M" : "L", static_cast<double>(i) * step,
                        y_of(buckets[i].*level, top), static_cast<double>(i + 1) * step);
  }
  return path;
}

/// The area between the maxima and the minima: back along the minima.
std::string band_path(const std::vector<TimelineBucket>& buckets, double step, uint64_t top) {
  std::string path = staircase(buckets, &TimelineBucket::max_bytes, step, top);
  for (size_t i = buckets.size(); i-- > 0;) {
    path += fmt::format("L{:.1f},{:.1f}H{:.1f}", static_cast<double>(i + 1) * step,
                        y_of(buckets[i].min_bytes, top), static_cast<double>(i) * step);
  }
  return path + 'Z';
}

uint64_t since_start(const Analysis& analysis, uint64_t time_ns) {
  return time_ns > analysis.start_time_ns ? time_ns - analysis.start_time_ns : 0;
}

std::string tooltip_targets(const Analysis& analysis, const Timeline& timeline, double step) {
  std::string out;
  const auto& buckets = timeline.buckets();
  for (size_t i = 0; i < buckets.size(); ++i) {
    const uint64_t from = since_start(analysis, timeline.start_ns() + i * timeline.bucket_ns());
    out += fmt::format(
        R"(<rect x="{:.1f}" width="{:.1f}" height="{}"><title>{}: {} to {}, {}</title></rect>)",
        static_cast<double>(i) * step, step, kTimelineHeight, format_duration(from),
        format_bytes(buckets[i].min_bytes), format_bytes(buckets[i].max_bytes),
        format_plural(buckets[i].alloc_count, "allocation"));
  }
  return out;
}

/// Where the peak lies, 0 to 1; below 0 where it was before the first event that is left.
double peak_position(const DeviceAnalysis& device) {
  const Timeline& timeline = device.timeline;
  if (device.figures.peak_time_ns < timeline.start_ns()) return -1;
  const double span =
      static_cast<double>(timeline.bucket_ns()) * static_cast<double>(timeline.buckets().size());
  return std::min(1.0,
                  static_cast<double>(device.figures.peak_time_ns - timeline.start_ns()) / span);
}

}  // namespace

uint64_t axis_top(uint64_t bytes) {
  uint64_t unit = 1;
  while (unit < (uint64_t{1} << 60) && bytes > unit * 8) unit *= 2;
  for (uint64_t halves : {2, 3, 4, 6, 8, 10, 12, 16}) {
    if (unit * halves / 2 >= bytes) return std::max<uint64_t>(unit * halves / 2, 1);
  }
  return std::max<uint64_t>(bytes, 1);
}

std::string axis_start(uint64_t since_start_ns, uint64_t column_ns) {
  return since_start_ns < column_ns ? "0 s" : format_duration(since_start_ns);
}

std::string timeline_figure(const Analysis& analysis, const DeviceAnalysis& device, bool tooltips) {
  const Timeline& timeline = device.timeline;
  const auto& buckets = timeline.buckets();
  if (buckets.empty()) return "<p>No event to draw.</p>\n";
  uint64_t highest = 0;
  for (const TimelineBucket& bucket : buckets) highest = std::max(highest, bucket.max_bytes);
  const uint64_t top = axis_top(highest);
  const double step = kTimelineWidth / static_cast<double>(buckets.size());

  std::string labels, grid;
  for (int i = 0; i <= kGridLines; ++i) {
    const double y = kTimelineHeight * i / kGridLines;
    const auto bytes =
        static_cast<uint64_t>(static_cast<double>(top) * (kGridLines - i) / kGridLines);
    grid += fmt::format(R"(<path d="M0,{0:.0f}H{1:.0f}"/>)", y, kTimelineWidth);
    labels += fmt::format("<span>{}</span>", format_bytes(bytes));
  }
  const double peak = peak_position(device);
  std::string mark, mark_label;
  if (peak >= 0) {
    mark = fmt::format(R"(<path class="peak" d="M{0:.1f},0V{1:.0f}"/>)", peak * kTimelineWidth,
                       kTimelineHeight);
    mark_label = fmt::format(R"(<span class="mark {}" style="left:{:.1f}%">peak {}</span>)",
                             peak > 0.5 ? "before" : "after", peak * 100,
                             format_bytes(device.figures.peak_bytes));
  }
  const uint64_t end = timeline.start_ns() + buckets.size() * timeline.bucket_ns();
  return fmt::format(
      "<figure><div class=\"plot\"><div class=\"y\">{}</div><div class=\"area\">{}"
      "<svg viewBox=\"0 0 {:.0f} {:.0f}\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"Live bytes over time\"><path class=\"base\" d=\"{}V{:.0f}H0Z\"/><g "
      "class=\"grid\">{}</g><path "
      "class=\"band\" d=\"{}\"/>"
      "<path class=\"top\" d=\"{}\"/>{}<g class=\"tips\">{}</g></svg></div></div>"
      "<figcaption><span>{}</span><span>time after the start; each column is {}, the band its "
      "minimum to its maximum</span><span>{}</span></figcaption></figure>\n",
      labels, mark_label, kTimelineWidth, kTimelineHeight,
      staircase(buckets, &TimelineBucket::min_bytes, step, top), kTimelineHeight, grid,
      band_path(buckets, step, top), staircase(buckets, &TimelineBucket::max_bytes, step, top),
      mark, tooltips ? tooltip_targets(analysis, timeline, step) : std::string(),
      axis_start(since_start(analysis, timeline.start_ns()), timeline.bucket_ns()),
      format_duration(timeline.bucket_ns()), format_duration(since_start(analysis, end)));
}

}  // namespace gpumemprof

#include "report/render/levels_svg.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/replay/snapshot_device.h"
#include "base/size.h"
#include "report/render/timeline_svg.h"
#include "report/words.h"
#include "trace/trace_source.h"

namespace gpumemprof {
namespace {

constexpr double kLevelsWidth = 1000;
constexpr double kLevelsHeight = 240;
constexpr size_t kSegmentRows = 60;
constexpr size_t kMostBlocks = 6000;
constexpr double kRowHeight = 9;

std::string staircase(const Timeline& timeline, uint64_t top) {
  const auto& buckets = timeline.buckets();
  const double step = kLevelsWidth / static_cast<double>(buckets.size());
  std::string path;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const double y = kLevelsHeight - kLevelsHeight * static_cast<double>(buckets[i].max_bytes) /
                                         static_cast<double>(top);
    path += fmt::format("{}{:.1f},{:.1f}H{:.1f}", i == 0 ? "M" : "L", static_cast<double>(i) * step,
                        y, static_cast<double>(i + 1) * step);
  }
  return path;
}

uint64_t highest(const Timeline& timeline) {
  uint64_t most = 0;
  for (const TimelineBucket& bucket : timeline.buckets()) most = std::max(most, bucket.max_bytes);
  return most;
}

/// "3.2 s" after the start, or "event 12,288".
std::string place(const Analysis& analysis, const SnapshotDevice& snapshot, uint64_t time) {
  if (!snapshot.has_times) return "event " + format_count(time / kTicksPerEvent);
  return format_duration(time - std::min(time, analysis.start_time_ns));
}

/// "2.00 GiB segment at 0x7f…": what a row is.
std::string row_title(const SegmentPicture& segment) {
  return fmt::format("{}{} segment at {:#x}: {} in use, {} pinned free",
                     segment.is_large ? "large" : "small",
                     segment.is_expandable ? " expandable" : "", segment.address,
                     format_bytes(segment.active_bytes), format_bytes(segment.pinned_bytes));
}

const char* block_class(const SegmentPicture& segment, const BlockPicture& block) {
  if (block.state != SimulatedBlock::State::kFree) return "live";
  return segment.pinned_bytes != 0 ? "pinned" : "whole";
}

}  // namespace

std::string levels_figure(const Analysis& analysis, const DeviceAnalysis& device) {
  const SnapshotDevice& snapshot = *device.snapshot;
  const Timeline& requested = device.timeline;
  if (requested.buckets().empty()) return "<p>No event to draw.</p>\n";
  const bool all = snapshot.is_consistent && !snapshot.reserved.buckets().empty();
  const uint64_t top = axis_top(std::max(highest(requested), all ? highest(snapshot.reserved) : 0));
  std::string labels, grid, lines;
  for (int i = 0; i <= kGridLines; ++i) {
    const auto bytes =
        static_cast<uint64_t>(static_cast<double>(top) * (kGridLines - i) / kGridLines);
    grid += fmt::format(R"(<path d="M0,{0:.0f}H{1:.0f}"/>)", kLevelsHeight * i / kGridLines,
                        kLevelsWidth);
    labels += fmt::format("<span>{}</span>", format_bytes(bytes));
  }
  lines = fmt::format(R"(<path class="base" d="{}V{:.0f}H0Z"/>)", staircase(requested, top),
                      kLevelsHeight);
  if (all) {
    lines += fmt::format(R"(<path class="peak" d="{}"/>)", staircase(snapshot.reserved, top));
    lines += fmt::format(R"(<path class="mid" d="{}"/>)", staircase(snapshot.allocated, top));
  }
  lines += fmt::format(R"(<path class="top" d="{}"/>)", staircase(requested, top));
  const uint64_t end = requested.start_ns() + requested.buckets().size() * requested.bucket_ns();
  return fmt::format(
      "<figure><div class=\"plot\"><div class=\"y\">{}</div><div class=\"area\"><svg viewBox=\"0 0 "
      "{:.0f} {:.0f}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Requested, allocated "
      "and reserved bytes\"><g class=\"grid\">{}</g>{}</svg></div></div><figcaption><span>{}</span>"
      "<span>maximum per interval: <b class=\"k top\">requested</b>{}</span><span>{}</span>"
      "</figcaption></figure>\n",
      labels, kLevelsWidth, kLevelsHeight, grid, lines,
      place(analysis, snapshot, requested.start_ns()),
      all ? " <b class=\"k mid\">allocated</b> <b class=\"k peak\">reserved</b>" : "",
      place(analysis, snapshot, end));
}

std::string segments_figure(const AllocatorMoment& moment) {
  std::vector<const SegmentPicture*> rows;
  for (const SegmentPicture& segment : moment.segments) rows.push_back(&segment);
  if (rows.empty()) return "";
  std::ranges::stable_sort(rows, std::greater<>(), &SegmentPicture::size_bytes);
  const size_t shown = std::min(kSegmentRows, rows.size());
  const double scale =
      kLevelsWidth / static_cast<double>(std::max<uint64_t>(rows[0]->size_bytes, 1));
  std::string svg;
  size_t drawn = 0;
  for (size_t row = 0; row < shown && drawn < kMostBlocks; ++row) {
    svg += fmt::format("<g><title>{}</title>", html_text(row_title(*rows[row])));
    double x = 0;
    for (const BlockPicture& block : rows[row]->blocks) {
      const double width = static_cast<double>(block.size_bytes) * scale;
      // What is narrower than a tenth of a pixel would be thousands of invisible shapes.
      if (width >= 0.1 && drawn++ < kMostBlocks) {
        svg += fmt::format(R"(<rect class="{}" x="{:.1f}" y="{:.0f}" width="{:.1f}" height="7"/>)",
                           block_class(*rows[row], block), x, static_cast<double>(row) * kRowHeight,
                           width);
      }
      x += width;
    }
    svg += "</g>\n";
  }
  const double height = static_cast<double>(shown) * kRowHeight;
  std::string caption =
      fmt::format("the {} of {}", shown == 1 ? "largest" : "largest " + std::to_string(shown),
                  format_plural(rows.size(), "segment"));
  return fmt::format(
      "<figure><svg class=\"segments\" viewBox=\"0 0 {:.0f} {:.0f}\" preserveAspectRatio=\"none\" "
      "style=\"height:{:.0f}px\" role=\"img\" aria-label=\"Segments at the peak\">{}</svg>"
      "<figcaption><span>{}</span><span><b class=\"k live\">live</b> <b class=\"k pinned\">free, "
      "pinned</b> <b class=\"k whole\">free to go</b></span></figcaption></figure>\n",
      kLevelsWidth, height, height, svg, caption);
}

}  // namespace gpumemprof

#include <fmt/format.h>

#include <algorithm>

#include "analysis/compare/diff.h"
#include "base/size.h"
#include "report/gate_report.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kShownLines = 8;
constexpr size_t kShownPeaks = 20;

std::string told_peak(const PeakComparison& peak, const GateReport& report) {
  const std::string text = verdict_text(peak, report);
  return peak.subject.empty() ? text : printable(peak.subject) + ": " + text;
}

void add_changed_lines(const PeakComparison& peak, std::vector<std::string>* out) {
  const ShownChanges shown = shown_changes(peak, kShownLines);
  for (const LineChange& change : shown.lines) {
    out->push_back(
        fmt::format("    {}  {}{}{}", signed_bytes(change.delta()), peak_line_text(change.line),
                    change_mark(change),
                    change.line.source.empty() ? "" : "  " + printable(change.line.source)));
  }
  if (shown.others_bytes != 0)
    out->push_back(fmt::format("    {}  {}", signed_bytes(shown.others_bytes), kOtherLines));
}

}  // namespace

size_t GateReport::failures() const {
  return static_cast<size_t>(std::ranges::count_if(peaks, &PeakComparison::has_failed));
}

size_t GateReport::unknowns() const {
  return static_cast<size_t>(std::ranges::count_if(peaks, &PeakComparison::is_unknown));
}

std::string peak_name(const PeakComparison& peak) {
  return (peak.subject.empty() ? "the program" : printable(peak.subject)) + " on " +
         printable(peak.kind);
}

std::string signed_bytes(int64_t delta) {
  const uint64_t size = magnitude(delta);
  return (delta < 0 ? "-" : "+") + format_count(size) + (size == 1 ? " byte" : " bytes");
}

std::string growth_percent(const PeakComparison& peak) {
  if (peak.before_bytes == 0) return "";
  const double before = static_cast<double>(peak.before_bytes);
  return fmt::format("{:+.2f} %", (static_cast<double>(peak.now_bytes) - before) / before * 100);
}

ShownChanges shown_changes(const PeakComparison& peak, size_t most_lines) {
  if (peak.verdict == PeakVerdict::kNew || peak.verdict == PeakVerdict::kMissing) return {};
  ShownChanges out{.lines = std::span(peak.lines).first(std::min(most_lines, peak.lines.size())),
                   .others_bytes = static_cast<int64_t>(peak.now_bytes - peak.before_bytes)};
  for (const LineChange& change : out.lines) out.others_bytes -= change.delta();
  return out;
}

std::string change_mark(const LineChange& change) {
  return change.is_new ? "  (new)" : change.now_bytes == 0 ? "  (gone)" : "";
}

std::string peak_line_text(const PeakLine& line) {
  if (line.file.empty() && line.function.empty()) return "(no stack recorded)";
  std::string text = line.file;
  if (line.line != 0) text += ':' + std::to_string(line.line);
  return printable(text + (line.function.empty() ? "" : ' ' + line.function));
}

std::string not_exact_words(const std::string& lost) {
  return lost.empty() ? "events were lost" : "lost " + printable(lost);
}

std::string verdict_text(const PeakComparison& peak, const GateReport& report) {
  const std::string now =
      fmt::format("peak {} on {}{}", format_bytes(peak.now_bytes), printable(peak.kind),
                  peak.rank ? fmt::format(" of rank {}", *peak.rank) : "");
  const std::string before = format_bytes(peak.before_bytes);
  const std::string by = signed_bytes(static_cast<int64_t>(peak.now_bytes - peak.before_bytes));
  std::string text;
  switch (peak.verdict) {
    case PeakVerdict::kGrew:
      text = fmt::format("{} exceeds the baseline {} by {} ({}, allowed {})", now, before,
                         by.substr(1), growth_percent(peak), report.tolerance);
      break;
    case PeakVerdict::kWithin:
      text = fmt::format("{}, the baseline {} ({}, {})", now, before, by, growth_percent(peak));
      break;
    case PeakVerdict::kShrank:
      text =
          fmt::format("{} is below the baseline {} by {} ({}): --update --reason \"…\" makes it "
                      "the baseline",
                      now, before, by.substr(1), growth_percent(peak));
      break;
    case PeakVerdict::kNew:
      text = now + (report.baseline.empty() ? "" : ", which the baseline does not have");
      break;
    case PeakVerdict::kMissing:
      text = fmt::format("not measured on {}: the baseline has {}", printable(peak.kind), before);
      break;
  }
  if (peak.is_above_limit()) {
    const uint64_t limit = *peak.limit_bytes;
    const std::string above = signed_bytes(static_cast<int64_t>(peak.now_bytes - limit)).substr(1);
    text = fmt::format("{} exceeds the limit {} by {}{}", now, printable(report.limit), above,
                       peak.verdict == PeakVerdict::kGrew ? "; " + text : "");
  }
  if (peak.reserved_bytes) text += fmt::format("; {} reserved", format_bytes(*peak.reserved_bytes));
  if (!peak.other_basis.empty())
    text +=
        "; the baseline has " + printable(peak.other_basis) + " bytes: the two differ by rounding";
  if (peak.is_unknown()) text += "; UNKNOWN whether it passes";
  if (!peak.is_exact) text += "; NOT EXACT: " + not_exact_words(peak.lost);
  return text;
}

std::vector<std::string> gate_lines(const GateReport& report) {
  std::vector<std::string> out;
  if (!report.end.empty()) out.push_back(report.end);
  size_t shown = 0, left_out = 0;
  for (const PeakComparison& peak : report.peaks) {
    if (!peak.has_failed()) continue;
    out.push_back(told_peak(peak, report));
    add_changed_lines(peak, &out);
  }
  for (const PeakComparison& peak : report.peaks) {
    if (peak.has_failed()) continue;
    if (peak.is_unknown() || shown++ < kShownPeaks)
      out.push_back(told_peak(peak, report));
    else
      ++left_out;
  }
  if (left_out > 0) out.push_back("and " + format_plural(left_out, "peak") + " more");
  return out;
}

}  // namespace gpumemprof

#include <fmt/format.h>

#include <cctype>

#include "base/size.h"
#include "report/gate_report.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kLinesOfAPeak = 25;
constexpr size_t kRoomForTheEnd = 200;

/// As code within a table: every sign that Markdown or HTML could read is an entity.
std::string code_cell(const std::string& text) {
  std::string out = "<code>";
  for (const char c : printable(text)) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) ||
                          static_cast<unsigned char>(c) >= 0x80 ||
                          std::string_view(" .,:/()=+-").contains(c);
    out += is_plain ? std::string(1, c) : fmt::format("&#{};", static_cast<unsigned char>(c));
  }
  return out + "</code>";
}

std::string size_cell(uint64_t bytes) {
  if (bytes < 1024) return format_bytes(bytes);
  return fmt::format("{} ({})", format_bytes(bytes), format_count(bytes));
}

const char* verdict_word(const PeakComparison& peak) {
  if (peak.is_above_limit()) return "**above the limit**";
  if (peak.is_unknown()) return "**unknown**";
  // In the order of PeakVerdict.
  constexpr const char* kWords[] = {"ok", "**grew**", "shrank", "new", "not measured"};
  return kWords[static_cast<size_t>(peak.verdict)];
}

std::string peak_cell(const PeakComparison& peak) {
  return (peak.subject.empty() ? "the program" : code_cell(peak.subject)) + " on " +
         code_cell(peak.kind);
}

std::string peak_row(const PeakComparison& peak) {
  const bool has_now = peak.verdict != PeakVerdict::kMissing;
  const bool has_before = peak.verdict != PeakVerdict::kNew;
  const std::string change =
      has_now && has_before
          ? fmt::format("{} ({})", growth_percent(peak),
                        signed_bytes(static_cast<int64_t>(peak.now_bytes - peak.before_bytes)))
          : "";
  std::string notes;
  if (peak.reserved_bytes) notes += ", reserved " + format_bytes(*peak.reserved_bytes);
  if (!peak.is_exact) notes += ", NOT EXACT: " + code_cell(not_exact_words(peak.lost));
  return fmt::format("| {} | {}{} | {} | {} | {} |\n", verdict_word(peak), peak_cell(peak), notes,
                     has_now ? size_cell(peak.now_bytes) : "",
                     has_before ? size_cell(peak.before_bytes) : "", change);
}

std::string changed_line_row(const LineChange& change) {
  return fmt::format("| {} | {} | {} | {}{} |\n", signed_bytes(change.delta()),
                     format_count(change.now_bytes),
                     change.is_new ? "" : format_count(change.before_bytes),
                     code_cell(peak_line_text(change.line)),
                     change.line.source.empty() ? "" : "<br>" + code_cell(change.line.source));
}

std::string changed_lines(const PeakComparison& peak) {
  const ShownChanges shown = shown_changes(peak, kLinesOfAPeak);
  std::string rows;
  for (const LineChange& change : shown.lines) rows += changed_line_row(change);
  if (shown.others_bytes != 0)
    rows += fmt::format("| {} | | | {} |\n", signed_bytes(shown.others_bytes), kOtherLines);
  if (rows.empty()) return "";
  return "\n" + peak_cell(peak) +
         ", lines that changed (bytes at the peak):\n\n| change | now | before | line |\n"
         "|---:|---:|---:|---|\n" +
         rows;
}

/// Appends whole pieces as long as there is room.
class Comment {
 public:
  explicit Comment(std::string head) : text_(std::move(head)) {}
  void add(const std::string& piece) {
    if (is_full_ || text_.size() + piece.size() + kRoomForTheEnd > kMostCommentBytes) {
      is_full_ = true;
      ++left_out_;
    } else {
      text_ += piece;
    }
  }
  std::string finish() && {
    if (left_out_ > 0)
      text_ += fmt::format("\n{} left out: the comment would be longer than {} bytes.\n",
                           format_plural(left_out_, "part"), format_count(kMostCommentBytes));
    return std::move(text_);
  }

 private:
  std::string text_;
  bool is_full_ = false;
  size_t left_out_ = 0;
};

}  // namespace

std::string gate_markdown(const GateReport& report) {
  const size_t failures = report.failures(), unknowns = report.unknowns();
  const std::string compared = report.baseline.empty() ? "" : " by more than " + report.tolerance;
  const std::string peaks = format_plural(report.peaks.size(), "peak");
  std::string head = "<!-- gpumemprof gate -->\n### Memory: ";
  if (failures > 0)
    head += fmt::format("{} of {} grew{}", format_count(failures), peaks,
                        compared.empty() ? " above the limit" : compared);
  else if (unknowns == 0)
    head += fmt::format("{}, none grew{}", peaks, compared);
  if (unknowns > 0)
    head += fmt::format("{}{} of {} unknown: events were lost", failures > 0 ? ", " : "",
                        format_count(unknowns), peaks);
  head += "\n\n";
  if (!report.end.empty()) head += report.end + ".\n\n";
  Comment comment(head + "| | | peak | baseline | change |\n|---|---|---:|---:|---:|\n");
  for (const bool passed : {false, true}) {
    for (const PeakComparison& peak : report.peaks)
      if (peak.has_passed() == passed) comment.add(peak_row(peak));
  }
  for (const PeakComparison& peak : report.peaks) {
    if (!peak.has_failed()) continue;
    if (const std::string lines = changed_lines(peak); !lines.empty()) comment.add(lines);
  }
  return std::move(comment).finish();
}

}  // namespace gpumemprof

// The gate's files for CI: JUnit's XML, and the JSON of benchmark actions.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/gate_report.h"
#include "report/words.h"

namespace gpumemprof {
namespace {

constexpr size_t kLinesInExtra = 5;
constexpr size_t kLinesInFailure = 25;

std::string xml_text(const std::string& text) {
  constexpr std::string_view kSpecial = "&<>\"";
  constexpr const char* kEntities[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
  std::string out;
  for (const char c : text) {
    const size_t at = kSpecial.find(c);
    out += at == kSpecial.npos ? std::string(1, c) : kEntities[at];
  }
  return out;
}

std::string case_xml(const PeakComparison& peak, const GateReport& report) {
  std::string out =
      fmt::format("    <testcase classname=\"gpumemprof.gate\" name=\"{}\" time=\"0\">\n",
                  xml_text("peak of " + peak_name(peak)));
  const std::string text = verdict_text(peak, report);
  if (peak.has_failed()) {
    const ShownChanges shown = shown_changes(peak, kLinesInFailure);
    std::string lines;
    for (const LineChange& change : shown.lines)
      lines += signed_bytes(change.delta()) + "  " + peak_line_text(change.line) +
               change_mark(change) + '\n';
    if (shown.others_bytes != 0)
      lines += signed_bytes(shown.others_bytes) + "  " + kOtherLines + '\n';
    out += fmt::format("      <failure message=\"{}\">{}</failure>\n", xml_text(text),
                       xml_text(lines));
  } else if (peak.is_unknown()) {
    out += fmt::format("      <error message=\"{}\"/>\n", xml_text(text));
  } else if (peak.verdict == PeakVerdict::kMissing) {
    out += fmt::format("      <skipped message=\"{}\"/>\n", xml_text(text));
  } else {
    out += fmt::format("      <system-out>{}</system-out>\n", xml_text(text));
  }
  return out + "    </testcase>\n";
}

}  // namespace

std::string gate_junit(const GateReport& report) {
  size_t skipped = 0;
  std::string cases;
  for (const PeakComparison& peak : report.peaks) {
    skipped += peak.verdict == PeakVerdict::kMissing && !peak.has_failed();
    cases += case_xml(peak, report);
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<testsuites>\n  <testsuite name=\"gpumemprof "
      "gate\" "
      "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n{}  "
      "</testsuite>\n</testsuites>\n",
      report.peaks.size(), report.failures(), report.unknowns(), skipped, cases);
}

std::string gate_benchmark(const GateReport& report) {
  using Json = nlohmann::ordered_json;
  Json out = Json::array();
  for (const PeakSubject& subject : report.subjects) {
    for (const PeakMemory& memory : subject.memories) {
      std::string extra = memory.is_exact ? "" : "NOT EXACT: " + not_exact_words(memory.lost);
      for (size_t i = 0; i < std::min(memory.lines.size(), kLinesInExtra); ++i)
        extra += (extra.empty() ? "" : "\n") + format_count(memory.lines[i].bytes) + " bytes " +
                 peak_line_text(memory.lines[i]);
      out.push_back(
          {{"name", "peak of " + peak_name({.subject = subject.name, .kind = memory.kind})},
           {"unit", "bytes"},
           {"value", memory.peak_bytes},
           {"range", "± " + report.tolerance},
           {"extra", extra}});
    }
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace gpumemprof

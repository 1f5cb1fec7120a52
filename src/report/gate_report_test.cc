#include "report/gate_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/describe/facts.h"

namespace gpumemprof {
namespace {

PeakComparison grown_peak(const std::string& subject = "") {
  return {.subject = subject,
          .kind = "cpu",
          .verdict = PeakVerdict::kGrew,
          .now_bytes = (2 << 20) + 2,
          .before_bytes = 1 << 20,
          .lines = {{.line = {.file = "m|o`del.py",
                              .line = 12,
                              .function = "forward",
                              .source = "<b>*x*</b>"},
                     .before_bytes = 0,
                     .now_bytes = 1 << 20,
                     .is_new = true},
                    {.line = {.file = "gone.py", .line = 1, .function = "f"}, .before_bytes = 5}}};
}

GateReport gate_report_of(std::vector<PeakComparison> peaks) {
  return {.peaks = std::move(peaks), .baseline = "memory.json", .tolerance = "1%"};
}

TEST(GateReport, WhatFailedIsToldFirstWithTheLinesThatChangedWhichAddUp) {
  const auto lines = gate_lines(gate_report_of(
      {{.subject = "t.py::a", .kind = "cpu", .now_bytes = 10, .before_bytes = 10}, grown_peak()}));
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "peak 2.00 MiB on cpu exceeds the baseline 1.00 MiB by 1,048,578 bytes "
                       "(+100.00 %, allowed 1%)",
                       "    +1,048,576 bytes  m|o`del.py:12 forward  (new)  <b>*x*</b>",
                       "    -5 bytes  gone.py:1 f  (gone)", "    +7 bytes  in other lines",
                       "t.py::a: peak 10 B on cpu, the baseline 10 B (+0 bytes, +0.00 %)"}));
}

TEST(GateReport, OfSeveralRanksTheOneThatHeldMostIsTold) {
  PeakComparison peak = grown_peak();
  peak.rank = 1;
  EXPECT_TRUE(verdict_text(peak, gate_report_of({peak}))
                  .starts_with("peak 2.00 MiB on cpu of rank 1 exceeds the baseline 1.00 MiB by "));
}

TEST(GateReport, ALimitIsToldBesideTheBaseline) {
  PeakComparison peak{
      .kind = "cuda", .verdict = PeakVerdict::kNew, .now_bytes = 3072, .limit_bytes = 2048};
  peak.reserved_bytes = 4096;
  EXPECT_EQ(verdict_text(peak, {.limit = "2KiB"}),
            "peak 3.00 KiB on cuda exceeds the limit 2KiB by 1,024 bytes; 4.00 KiB reserved");
}

TEST(GateReport, APeakThatIsNotExactHasWhatWasLost) {
  Loss loss;
  loss.add(12, 0, "the disk was full");
  PeakComparison peak{
      .kind = "cpu", .verdict = PeakVerdict::kNew, .now_bytes = 2048, .is_exact = false};
  EXPECT_EQ(verdict_text(peak, {}), "peak 2.00 KiB on cpu; NOT EXACT: events were lost");
  peak.lost = lost_words(loss);
  EXPECT_EQ(verdict_text(peak, {}),
            "peak 2.00 KiB on cpu; NOT EXACT: lost 12 events: the disk was full (12 events)");
  EXPECT_NE(gate_markdown(gate_report_of({peak}))
                .find(", NOT EXACT: <code>lost 12 events: the disk was full (12 events)</code> |"),
            std::string::npos);
  EXPECT_EQ(lost_words({}), "");
}

TEST(GateReport, WhatWasLostMayHaveFailed) {
  PeakComparison peak{.subject = "t.py::a",
                      .kind = "cpu",
                      .verdict = PeakVerdict::kWithin,
                      .now_bytes = 10,
                      .before_bytes = 10,
                      .is_exact = false,
                      .lost = "12 events"};
  GateReport report = gate_report_of({peak, grown_peak()});
  report.subjects = {
      {.memories = {{.kind = "cpu", .peak_bytes = 12, .is_exact = false, .lost = "12 events"}}}};
  EXPECT_EQ(report.failures(), 1u);
  EXPECT_EQ(report.unknowns(), 1u);
  EXPECT_EQ(verdict_text(peak, report),
            "peak 10 B on cpu, the baseline 10 B (+0 bytes, +0.00 %); UNKNOWN whether it passes; "
            "NOT EXACT: lost 12 events");
  const std::string markdown = gate_markdown(report);
  EXPECT_NE(markdown.find("Memory: 1 of 2 peaks grew by more than 1%, 1 of 2 peaks unknown: events "
                          "were lost\n"),
            std::string::npos)
      << markdown;
  EXPECT_NE(markdown.find("| **unknown** | <code>t.py::a</code>"), std::string::npos) << markdown;
  const std::string junit = gate_junit(report);
  EXPECT_NE(junit.find("tests=\"2\" failures=\"1\" errors=\"1\" skipped=\"0\""), std::string::npos);
  EXPECT_NE(junit.find("<error message=\"peak 10 B on cpu"), std::string::npos) << junit;
  EXPECT_EQ(nlohmann::json::parse(gate_benchmark(report))[0]["extra"], "NOT EXACT: lost 12 events");
}

TEST(GateReport, WhatWasLostChangesNoFailureAndNothingThatIsNotCompared) {
  PeakComparison peak = grown_peak();
  peak.is_exact = false;
  EXPECT_TRUE(peak.has_failed());
  EXPECT_FALSE(peak.is_unknown());
  peak.verdict = PeakVerdict::kNew;
  EXPECT_TRUE(peak.has_passed());
  peak.limit_bytes = peak.now_bytes;
  EXPECT_TRUE(peak.is_unknown());
  peak.limit_bytes = peak.now_bytes - 1;
  EXPECT_TRUE(peak.has_failed());
}

TEST(GateReport, TellsFirstHowAProgramThatFailedEnded) {
  GateReport report = gate_report_of({grown_peak()});
  report.end = "the program exited with 7: its peaks are those until then";
  EXPECT_EQ(gate_lines(report).front(), report.end);
  EXPECT_NE(gate_markdown(report).find("\n\n" + report.end + ".\n\n| | |"), std::string::npos);
}

TEST(GateReport, NoSignOfANameIsMarkdown) {
  const std::string text = gate_markdown(gate_report_of({grown_peak("t.py::a[@user|x]")}));
  EXPECT_NE(text.find("<code>t.py::a&#91;&#64;user&#124;x&#93;</code>"), std::string::npos) << text;
  EXPECT_NE(
      text.find("| +1,048,576 bytes | 1,048,576 |  | <code>m&#124;o&#96;del.py:12 forward</code>"
                "<br><code>&#60;b&#62;&#42;x&#42;&#60;/b&#62;</code> |"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("| -5 bytes | 0 | 5 | <code>gone.py:1 f</code> |\n"
                      "| +7 bytes | | | in other lines |\n"),
            std::string::npos)
      << text;
}

TEST(GateReport, ACommentOfThousandsOfTestsIsCutAndSaysSo) {
  std::vector<PeakComparison> peaks;
  for (int i = 0; i < 5000; ++i)
    peaks.push_back(grown_peak("tests/test_model.py::test_" + std::to_string(i)));
  const std::string text = gate_markdown(gate_report_of(std::move(peaks)));
  EXPECT_LE(text.size(), kMostCommentBytes);
  EXPECT_NE(text.find("5,000 of 5,000 peaks grew by more than 1%"), std::string::npos)
      << text.substr(0, 200);
  EXPECT_NE(text.find("left out"), std::string::npos);
}

TEST(GateReport, JunitHasATestCaseAPeak) {
  const std::string text = gate_junit(
      gate_report_of({grown_peak("a<b>&\"c"),
                      {.kind = "cpu", .verdict = PeakVerdict::kMissing, .before_bytes = 3}}));
  EXPECT_NE(text.find("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"1\""), std::string::npos)
      << text;
  EXPECT_NE(text.find("name=\"peak of a&lt;b&gt;&amp;&quot;c on cpu\""), std::string::npos);
  EXPECT_NE(text.find("+1,048,576 bytes  m|o`del.py:12 forward  (new)\n"
                      "-5 bytes  gone.py:1 f  (gone)\n+7 bytes  in other lines\n</failure>"),
            std::string::npos);
}

TEST(GateReport, BenchmarksHaveTheFieldsThatTheActionReads) {
  GateReport report = gate_report_of({});
  report.subjects = {
      {.name = "",
       .memories = {{.kind = "cpu",
                     .peak_bytes = 12,
                     .lines = {{.file = "a.py", .line = 1, .function = "f", .bytes = 12}}}}}};
  const auto json = nlohmann::json::parse(gate_benchmark(report));
  EXPECT_EQ(json, (nlohmann::json{{{"name", "peak of the program on cpu"},
                                   {"unit", "bytes"},
                                   {"value", 12},
                                   {"range", "± 1%"},
                                   {"extra", "12 bytes a.py:1 f"}}}));
}

}  // namespace
}  // namespace gpumemprof

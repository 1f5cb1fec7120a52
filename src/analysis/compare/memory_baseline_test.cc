#include "analysis/compare/memory_baseline.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

PeakLine code_line(const char* file, uint32_t line, const char* source, uint64_t bytes) {
  return {.file = file, .line = line, .function = "f", .source = source, .bytes = bytes};
}

std::vector<PeakSubject> program_with(uint64_t peak_bytes, std::vector<PeakLine> lines = {}) {
  return {{.name = "",
           .memories = {{.kind = "cpu",
                         .basis = "requested",
                         .peak_bytes = peak_bytes,
                         .lines = std::move(lines)}}}};
}

PeakVerdict verdict_of_peaks(uint64_t now_bytes, uint64_t before_bytes, const char* tolerance) {
  return compare_peaks(program_with(now_bytes), program_with(before_bytes),
                       *parse_tolerance(tolerance))
      .at(0)
      .verdict;
}

TEST(MemoryBaseline, GrowthFailsAboveTheToleranceAndNotAtIt) {
  EXPECT_EQ(verdict_of_peaks(1010, 1000, "1%"), PeakVerdict::kWithin);
  EXPECT_EQ(verdict_of_peaks(1011, 1000, "1%"), PeakVerdict::kGrew);
  EXPECT_EQ(verdict_of_peaks(1000, 1000, "0"), PeakVerdict::kWithin);
  EXPECT_EQ(verdict_of_peaks(1001, 1000, "0"), PeakVerdict::kGrew);
  EXPECT_EQ(verdict_of_peaks(1005, 1000, "0.5 %"), PeakVerdict::kWithin);
  EXPECT_EQ(verdict_of_peaks(1006, 1000, "0.5%"), PeakVerdict::kGrew);
}

TEST(MemoryBaseline, PeaksOfExabytesAreComparedExactly) {
  const uint64_t large = uint64_t{1} << 62;
  EXPECT_EQ(verdict_of_peaks(large + 1, large, "0"), PeakVerdict::kGrew);
  EXPECT_EQ(verdict_of_peaks(large + large / 100, large, "1%"), PeakVerdict::kWithin);
}

TEST(MemoryBaseline, LessPassesAndIsTold) {
  EXPECT_EQ(verdict_of_peaks(980, 1000, "1%"), PeakVerdict::kShrank);
  EXPECT_EQ(verdict_of_peaks(995, 1000, "1%"), PeakVerdict::kWithin);
}

TEST(MemoryBaseline, ATextThatIsNoPercentageIsRefused) {
  for (const char* text : {"", "%", "1", "x%", "1.%", "-1%", "1%%", "1001%", "99999999999%", "1% "})
    EXPECT_FALSE(parse_tolerance(text)) << text;
  EXPECT_EQ(*parse_tolerance("2.25 %"), 22'500u);
}

TEST(MemoryBaseline, ALineThatMovedIsTheSameLine) {
  const auto peaks = compare_peaks(program_with(300, {code_line("a.py", 12, "x = g()", 300)}),
                                   program_with(200, {code_line("a.py", 5, "x = g()", 200)}), 0);
  ASSERT_EQ(peaks.at(0).lines.size(), 1u);
  const LineChange& change = peaks[0].lines[0];
  EXPECT_EQ(change.delta(), 100);
  EXPECT_EQ(change.line.line, 12u);
  EXPECT_FALSE(change.is_new);
}

TEST(MemoryBaseline, ALineThatWasEditedIsTheOneOfItsNumber) {
  const auto peaks = compare_peaks(program_with(300, {code_line("a.py", 5, "x = g(2)", 300)}),
                                   program_with(200, {code_line("a.py", 5, "x = g(1)", 200)}), 0);
  ASSERT_EQ(peaks.at(0).lines.size(), 1u);
  EXPECT_EQ(peaks[0].lines[0].delta(), 100);
}

TEST(MemoryBaseline, LinesThatAreGoneAndNewAreToldTheLargestChangeFirst) {
  const auto peaks = compare_peaks(
      program_with(900, {code_line("a.py", 1, "a", 500), code_line("b.py", 2, "b", 400)}),
      program_with(700, {code_line("b.py", 2, "b", 300), code_line("c.py", 3, "c", 400)}), 0);
  ASSERT_EQ(peaks.at(0).lines.size(), 3u);
  EXPECT_EQ(peaks[0].lines[0].delta(), 500);
  EXPECT_TRUE(peaks[0].lines[0].is_new);
  EXPECT_EQ(peaks[0].lines[1].delta(), -400);
  EXPECT_EQ(peaks[0].lines[1].line.file, "c.py");
  EXPECT_EQ(peaks[0].lines[2].delta(), 100);
}

TEST(MemoryBaseline, TheSameTextTwiceInAFunctionIsTwoLines) {
  const auto peaks = compare_peaks(
      program_with(300, {code_line("a.py", 8, "x()", 200), code_line("a.py", 9, "x()", 100)}),
      program_with(300, {code_line("a.py", 2, "x()", 200), code_line("a.py", 3, "x()", 100)}), 0);
  EXPECT_TRUE(peaks.at(0).lines.empty());
}

/// The changes of a function whose line 12 became line 13, edited, behind a new line 12.
std::vector<LineChange> changes_by_a_line_before(uint64_t moved_bytes, uint64_t new_bytes) {
  return compare_peaks(
             program_with(moved_bytes + new_bytes,
                          {code_line("a.py", 13, "return (y - m) / (s + 1e-6)", moved_bytes),
                           code_line("a.py", 12, "y = x.clone()", new_bytes)}),
             program_with(moved_bytes,
                          {code_line("a.py", 12, "return (x - m) / (s + 1e-6)", moved_bytes)}),
             0)
      .at(0)
      .lines;
}

TEST(MemoryBaseline, ALineThatMovedAndWasEditedIsNotTheNewOneOfItsNumber) {
  for (const uint64_t moved_bytes : {8'193'024, 4'096'000, 2'048'000}) {  // than the new line:
    const auto lines = changes_by_a_line_before(moved_bytes, 4'096'000);  // more, as much, less
    ASSERT_EQ(lines.size(), 1u) << moved_bytes;
    EXPECT_EQ(lines[0].line.line, 12u);
    EXPECT_EQ(lines[0].delta(), 4'096'000);
    EXPECT_TRUE(lines[0].is_new);
  }
}

TEST(MemoryBaseline, LinesThatMovedWithoutTextAreTheOnesOfTheirBytes) {
  const auto peaks = compare_peaks(
      program_with(500, {code_line("a.py", 6, "", 400), code_line("a.py", 5, "", 100)}),
      program_with(400, {code_line("a.py", 5, "", 400)}), 0);
  ASSERT_EQ(peaks.at(0).lines.size(), 1u);
  EXPECT_EQ(peaks[0].lines[0].line.line, 5u);
  EXPECT_EQ(peaks[0].lines[0].delta(), 100);
}

TEST(MemoryBaseline, WhatOnlyOneSideHasPasses) {
  std::vector<PeakSubject> now = program_with(100), before = program_with(100);
  now.push_back({.name = "t.py::new", .memories = {{.kind = "cpu", .peak_bytes = 7}}});
  before.push_back({.name = "t.py::old", .memories = {{.kind = "cuda", .peak_bytes = 9}}});
  const auto peaks = compare_peaks(now, before, 0);
  ASSERT_EQ(peaks.size(), 3u);
  EXPECT_EQ(peaks[1].verdict, PeakVerdict::kNew);
  EXPECT_EQ(peaks[2].verdict, PeakVerdict::kMissing);
  EXPECT_EQ(peaks[2].before_bytes, 9u);
  for (const PeakComparison& peak : peaks) EXPECT_FALSE(peak.has_failed());
}

TEST(MemoryBaseline, ALimitIsExceededAboveItOnly) {
  PeakComparison peak{.now_bytes = 100, .limit_bytes = 100};
  EXPECT_FALSE(peak.has_failed());
  peak.now_bytes = 101;
  EXPECT_TRUE(peak.has_failed());
}

}  // namespace
}  // namespace gpumemprof

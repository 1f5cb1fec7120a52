// What `gpumemprof gate` tells: on a terminal, below a pull request, to CI.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/compare/memory_baseline.h"

namespace gpumemprof {

struct GateReport {
  std::vector<PeakSubject> subjects;  ///< as measured
  std::vector<PeakComparison> peaks;  ///< all of them
  std::string baseline;               ///< its file as typed; empty: there was none to compare with
  std::string tolerance;              ///< as typed: "1%"
  std::string limit;                  ///< as typed, with a unit: "10MB"; empty: there was none
  std::string end;  ///< how a program that failed ended, a sentence; empty: it succeeded
  size_t failures() const;
  size_t unknowns() const;  ///< peaks that may have failed: events were lost
};

/// Lines for a terminal, without prefixes and newlines: how the program failed, then what failed,
/// with the lines that changed.
std::vector<std::string> gate_lines(const GateReport& report);

/// A comment for a pull request, at most kMostCommentBytes, safe whatever names are in it.
inline constexpr size_t kMostCommentBytes = 60'000;
std::string gate_markdown(const GateReport& report);

/// A test case a peak.
std::string gate_junit(const GateReport& report);

/// What github-action-benchmark reads as customSmallerIsBetter.
std::string gate_benchmark(const GateReport& report);

// Shared by the above.
/// "the program on cpu", "tests/test_a.py::test_b on cuda".
std::string peak_name(const PeakComparison& peak);
/// "+240,000 bytes", "-12 bytes".
std::string signed_bytes(int64_t delta);
/// "+2.00 %"; empty where there was nothing.
std::string growth_percent(const PeakComparison& peak);
/// Of a peak that is not exact, by PeakMemory::lost: "lost 12 events: REASON (12 events)".
std::string not_exact_words(const std::string& lost);
/// What of the verdict a reader is told, number first.
std::string verdict_text(const PeakComparison& peak, const GateReport& report);
/// Of a peak that has a baseline: the lines that changed most, and the rest of its change.
struct ShownChanges {
  std::span<const LineChange> lines;
  int64_t others_bytes = 0;
};
ShownChanges shown_changes(const PeakComparison& peak, size_t most_lines);
inline constexpr const char* kOtherLines = "in other lines";
/// "  (new)", "  (gone)" or empty.
std::string change_mark(const LineChange& change);
/// "model.py:12 forward".
std::string peak_line_text(const PeakLine& line);

}  // namespace gpumemprof

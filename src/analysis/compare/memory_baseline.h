// Peaks of a program and of its tests, as a repository keeps them, and what has grown since.
//
// A subject is the whole program, or one test that the pytest plugin measured in a process of its
// own. Of each kind of device ("cpu", "cuda") it has the peak of the one that held most: peaks of
// different devices are never added up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace gpumemprof {

/// What a line of code held. Nothing in it depends on the machine.
struct PeakLine {
  std::string file;  ///< relative to the folder of the command; of a package below site-packages
  uint32_t line = 0;
  std::string function;
  std::string source;  ///< its text; empty where the file was not there
  uint64_t bytes = 0;
};

/// One kind of device.
struct PeakMemory {
  std::string kind;
  std::string basis;  ///< "requested": as the program asked for; "allocated": as rounded
  uint64_t peak_bytes = 0;
  std::optional<uint64_t> reserved_bytes;  ///< peak of the pool; told, never compared
  bool is_exact = true;
  std::string lost;             ///< of a measurement that is not exact: "12 events: REASON"
  std::vector<PeakLine> lines;  ///< at the peak, largest first
  uint64_t other_bytes = 0;     ///< of lines that are left out
  // Of a measurement only; a baseline has none of these.
  std::optional<uint32_t> rank;  ///< of the process, where several ranks were recorded
  uint64_t end_bytes = 0;
  std::vector<PeakLine> lines_at_end;
  uint64_t before_bytes = 0;  ///< of a test: live before its body
};

struct PeakSubject {
  std::string name;  ///< node id of a test; empty: the whole program
  std::vector<PeakMemory> memories;
};

struct BaselineReason {
  std::string date;  ///< "2026-11-25"
  std::string text;
};

struct MemoryBaseline {
  std::string version;                  ///< of the tool that wrote it
  std::vector<BaselineReason> reasons;  ///< oldest first
  std::vector<PeakSubject> subjects;
};

/// A line at both peaks. A line is the same where file, function and source text are, wherever it
/// has moved to. The other lines of a function are the same in the order that moved_lines.h finds,
/// else where their numbers are: their text was edited.
struct LineChange {
  PeakLine line;  ///< as it is now; as it was, where it holds nothing now
  uint64_t before_bytes = 0, now_bytes = 0;
  bool is_new = false;  ///< not among the baseline's lines, which may leave small ones out
  int64_t delta() const { return static_cast<int64_t>(now_bytes - before_bytes); }
};

enum class PeakVerdict : uint8_t {
  kWithin,   ///< of the tolerance
  kGrew,     ///< beyond it: the gate fails
  kShrank,   ///< beyond it: passes
  kNew,      ///< the baseline does not have it: passes
  kMissing,  ///< only the baseline has it: passes, and is told
};

struct PeakComparison {
  std::string subject, kind;
  PeakVerdict verdict = PeakVerdict::kWithin;
  uint64_t now_bytes = 0, before_bytes = 0;
  std::optional<uint64_t> reserved_bytes;
  std::optional<uint32_t> rank;         ///< as PeakMemory::rank
  bool is_exact = true;
  std::string lost;                     ///< as PeakMemory::lost
  std::optional<uint64_t> limit_bytes;  ///< that it must not exceed, whatever the baseline says
  std::string other_basis;              ///< of the baseline, where it is not that of now
  std::vector<LineChange> lines;        ///< all that changed, largest change first
  bool is_above_limit() const { return limit_bytes && now_bytes > *limit_bytes; }
  bool has_failed() const { return verdict == PeakVerdict::kGrew || is_above_limit(); }
  /// Compared, and nothing failed, but events were lost: what they held may have.
  bool is_unknown() const {
    const bool has_before = verdict == PeakVerdict::kWithin || verdict == PeakVerdict::kShrank;
    return !is_exact && !has_failed() && (has_before || limit_bytes);
  }
  bool has_passed() const { return !has_failed() && !is_unknown(); }
};

/// Parts per million. "1%", "0.5 %", "0". Errors: kUsage with one sentence.
Result<uint32_t> parse_tolerance(std::string_view text);

/// Above `before` by more than the tolerance, in exact arithmetic.
bool is_above(uint64_t now_bytes, uint64_t before_bytes, uint32_t tolerance_ppm);

/// In the order of `now`, then what only the baseline has.
std::vector<PeakComparison> compare_peaks(const std::vector<PeakSubject>& now,
                                          const std::vector<PeakSubject>& before,
                                          uint32_t tolerance_ppm);

}  // namespace gpumemprof

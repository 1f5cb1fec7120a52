// Something that is wrong, or worth changing, with the figures that prove it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/finding_kind.h"

namespace gpumemprof {

enum class Severity : uint8_t { kInfo, kWarning, kCritical };
const char* severity_name(Severity severity);  ///< "info", "warning", "critical"

/// What `steps_from` of a leak's facts is, where its rounds come after the last step.
inline constexpr const char* kRoundsAfterSteps = "rounds of a line after the last step";
/// The fact of a leak that no steps or rounds tell: when it was made.
inline constexpr const char* kMade = "made";
/// The name of segments that are freed and allocated over and over.
inline constexpr const char* kSegmentChurn = "segment_churn";
/// The name of a refusal that came of an earlier attempt, whose exception holds its frames.
inline constexpr const char* kHeldAttempt = "attempt_held_by_exception";

/// One of several lines that a finding is about.
struct FindingLine {
  uint32_t stack = 0;  ///< StackTable id of the line
  std::string text;    ///< "train.py:41"
  uint64_t bytes = 0, bytes_a_step = 0;
};

struct Finding {
  FindingKind kind = FindingKind::kLeak;
  Severity severity = Severity::kInfo;
  std::string name;   ///< which bug of that kind, where it is known: "loss_kept_with_graph"
  std::string title;  ///< one sentence
  std::optional<uint64_t> bytes;
  /// Figures behind it, by name; names end in their unit. In the order they are shown.
  std::vector<std::pair<std::string, uint64_t>> evidence;
  /// What is behind it and is no figure, by name: who holds the memory, why a figure is missing.
  std::vector<std::pair<std::string, std::string>> facts;
  /// Figures that are no whole numbers, by name, as `evidence`.
  std::vector<std::pair<std::string, double>> rates;
  double confidence = 1;           ///< 0 to 1; 1 where all of it is counted or replayed
  uint32_t stack = 0;              ///< StackTable id of the line that matters; 0: none
  std::vector<FindingLine> lines;  ///< where there are several: all, the one that matters first
  std::vector<uint32_t> stacks;    ///< StackTable ids, of a leak: those that keep, of all its lines
  std::string fix;      ///< what to do, one sentence; empty where nothing is proved to help
  bool is_fix_simulated = false;  ///< the fix was replayed and helps: `bytes` are by the replay
  uint16_t device = 0;  ///< index in Tables::devices
  std::vector<uint16_t> other_devices;  ///< of other processes, of which it is true as well
};

/// Whether it is about a request that an allocator refused.
inline bool is_refusal(const Finding& finding) {
  return finding.kind == FindingKind::kOutOfMemory ||
         finding.kind == FindingKind::kRefusedThoughItFits;
}

/// A leak of which so little is left at the end that it is no news beside the device's peak.
bool is_small_leak(const Finding& finding, uint64_t peak_bytes);

/// Whether it is growth and names what grows: a line, or the size of blocks without a stack.
bool tells_growth_by_line(const Finding& finding);

/// What grew, of a finding of growth; 0 of others.
uint64_t grown_bytes(const Finding& finding);

/// The most severe first; of equals those with the most bytes at stake; of equals as they came.
void sort_findings(std::vector<Finding>* findings);

}  // namespace gpumemprof

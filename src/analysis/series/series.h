// Questions to a series of memory samples: does it leak, what is its shape, how good is it.
//
// Samples are what a sampler saw; between two of them anything may have happened. Every statistic,
// threshold and weight is published in docs/scores.md; what changes here changes there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpumemprof {

enum class Severity : uint8_t { kInfo, kWarning, kCritical };
const char* severity_name(Severity severity);  ///< "info", "warning", "critical"

/// What an allocator says of its own free memory at one moment. Cache slack (reserved but not
/// allocated) is not it: without sizes of free blocks fragmentation is unknown.
struct FreeBlocks {
  double free_bytes = 0;
  double largest_free_block_bytes = 0;
};

struct SeriesOptions {
  /// The least growth that counts, as a share of the level: smaller finds more. Above 0, at most 1.
  double sensitivity = 0.05;
  std::optional<double> limit_bytes;  ///< what may be used at most: the device's or cgroup's total
  std::optional<FreeBlocks> free_blocks;
};

/// Figures behind an answer, by name; names end in their unit. In the order they are shown.
using Evidence = std::vector<std::pair<std::string, double>>;

/// type: "monotonic_increase", "spikes" or "insufficient_cleanup".
struct SeriesFinding {
  std::string type;
  Severity severity = Severity::kInfo;
  std::string description;
  double bytes = 0;       ///< grown, highest above its surroundings, or kept
  double confidence = 0;  ///< 0 to 1; docs/scores.md says of what
  Evidence evidence;
};

/// pattern_type: "steady_growth", "sawtooth", "spike" or "fragmentation".
struct SeriesPattern {
  std::string pattern_type;
  Severity severity = Severity::kInfo;
  std::string description;
  Evidence evidence;
};

/// Something about memory over time that is worth a sentence and is no fault by itself.
/// category: "growth", "limit", "peak" or "cycle".
struct SeriesInsight {
  std::string category;
  std::string description;
  Evidence evidence;
};

/// One part of the score; absent with a reason where the series cannot tell.
struct ScorePart {
  std::string name;  ///< "peak", "growth", "cleanup", "spikes", "fragmentation"
  double weight = 0;
  std::optional<double> value;  ///< 0 to 10
  std::string reason;           ///< why it is absent; else what it says
};

struct Score {
  std::optional<double> value;  ///< 0 to 10: the weighted mean of the parts that are known
  std::string reason;           ///< why there is none
  std::vector<ScorePart> parts;
};

struct SeriesReport {
  size_t samples = 0;          ///< used
  size_t ignored_samples = 0;  ///< no number, or negative
  size_t warmup_samples = 0;   ///< left out of the search for growth
  double duration_s = 0;
  double first_bytes = 0, last_bytes = 0, least_bytes = 0, peak_bytes = 0, mean_bytes = 0;
  double peak_time_s = 0;
  std::vector<SeriesFinding> findings;
  std::vector<SeriesPattern> patterns;
  std::vector<SeriesInsight> insights;
  std::vector<size_t> spike_samples;  ///< indexes in the order of time, where spikes were found
  Score score;
  /// Questions without an answer, and why: {"fragmentation", "no sizes of free blocks"}.
  std::vector<std::pair<std::string, std::string>> unknown;
};

/// Fewer samples than this tell nothing about growth, and there is no score.
inline constexpr size_t kLeastSamples = 6;

/// `times_s` and `bytes` are columns of one table; of columns of different lengths the common part
/// is read. Samples may come in any order. Never fails: what cannot be answered is in `unknown`.
/// O(n log n) time, O(n) memory.
SeriesReport analyze_series(std::span<const double> times_s, std::span<const double> bytes,
                            const SeriesOptions& options);

}  // namespace gpumemprof

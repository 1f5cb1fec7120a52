// Questions to a series of memory samples: does it leak, what is its shape, how good is it.
//
// Samples are what a sampler saw; between two of them anything may have happened. Every statistic,
// threshold and weight is published in docs/scores.md; what changes here changes there.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/finding.h"
#include "analysis/score.h"

namespace gpumemprof {

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
  double least_growth_s = 0;  ///< samples of less time tell nothing about growth
};

/// type: "monotonic_increase", "spikes" or "insufficient_cleanup".
struct SeriesFinding {
  std::string type;
  Severity severity = Severity::kInfo;
  std::string description;
  double bytes = 0;       ///< grown, highest above its surroundings, or kept
  double confidence = 0;  ///< 0 to 1; docs/scores.md says of what
  Evidence evidence;
};

/// Something about memory over time that is worth a sentence and is no fault by itself.
/// category: "growth", "limit", "peak" or "cycle".
struct SeriesInsight {
  std::string category;
  std::string description;
  Evidence evidence;
};

/// A sample that stands out, and by how much.
struct SpikeSample {
  size_t sample = 0;
  double above_bytes = 0;
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
  std::vector<SpikeSample> warmup_spikes;  ///< before them, in what is else left out
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

/// How bad a score is: the worst of several is theirs. One that hides growth is that of a leak.
double rank_of_score(const Score& score);

}  // namespace gpumemprof

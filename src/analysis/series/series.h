// Questions to a series of memory samples: does it leak, what is its shape, how good is it.
//
// Samples are what a sampler saw; between two of them anything may have happened. Every statistic,
// threshold and weight is published in docs/scores.md; what changes here changes there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/finding.h"
#include "analysis/score.h"
#include "analysis/statistics/statistics.h"

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

/// The floor of memory rises and goes on rising.
struct Growth {
  double bytes = 0;             ///< of the retained floor
  double bytes_per_second = 0;  ///< Theil-Sen over the floor
  double z = 0, tau = 0;        ///< Mann-Kendall over the floor
  double start_bytes = 0;       ///< the floor where the search began
  double rising_share = 0;      ///< of the samples that changed, those that rose
  size_t first_sample = 0;      ///< where the search began
};

/// Samples that stand out from their surroundings and are gone after a few.
struct Spikes {
  std::vector<size_t> samples;
  std::vector<SpikeSample> in_warmup;  ///< as high as these; no reason to speak of spikes alone
  size_t highest = 0;
  double highest_above_bytes = 0;
  double z = 0;  ///< of the highest
};

/// The rise to the highest level after the warm-up, and what was left of it.
struct LargestRise {
  double base_bytes = 0, peak_bytes = 0, final_bytes = 0;
  bool is_settled = true;  ///< memory does not move at the end
  double bytes() const { return peak_bytes - base_bytes; }
  double kept_bytes() const { return final_bytes - base_bytes; }
  double kept_share() const { return kept_bytes() / bytes(); }
};

/// Up and down again, at least three times.
struct Cycles {
  size_t count = 0;
  double period_s = 0;         ///< median from peak to peak
  double period_spread = 0;    ///< how far one usually is from that, as a share of it: the mean
  double amplitude_bytes = 0;  ///< median from valley to peak
};

struct SeriesAnswers {
  std::optional<Growth> growth;
  bool still_rises = false;
  std::optional<Spikes> spikes;
  std::optional<LargestRise> rise;
  std::optional<Cycles> cycles;
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
  SeriesAnswers answers;
  Score score;
  /// Questions without an answer, and why: {"fragmentation", "no sizes of free blocks"}.
  std::vector<std::pair<std::string, std::string>> unknown;

  /// Null where there is none of that type.
  const SeriesFinding* finding(std::string_view type) const {
    const auto found = std::ranges::find(findings, type, &SeriesFinding::type);
    return found == findings.end() ? nullptr : &*found;
  }
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

// The questions, one by one. analyze_series() asks them all.

/// What all questions share: samples in the order of time, and what counts as much.
struct Series {
  std::vector<double> times_s;
  std::vector<double> bytes;
  size_t warmup = 0;      ///< samples at the beginning that may grow as they like
  size_t end = 0;         ///< behind the last sample before a teardown at the end
  double level = 0;       ///< median after the warm-up
  double least_move = 0;  ///< a rise below this is nothing

  size_t size() const { return bytes.size(); }
  std::span<const double> values_from(size_t first) const {
    return std::span(bytes).subspan(first, end - first);
  }
  std::span<const double> times_from(size_t first) const {
    return std::span(times_s).subspan(first, end - first);
  }
};

/// Samples in any order, those that are no number of bytes left out.
Series prepared(std::span<const double> times_s, std::span<const double> bytes,
                const SeriesOptions& options);

/// From sample `first` on; numbered from the series's beginning.
std::vector<Extremum> turns_of(const Series& series, size_t first);

std::optional<Growth> find_growth(const Series& series);
/// Where that is not found: memory is higher in the last samples than in the first two thirds, and
/// not by one step alone. Whether that goes on nobody knows.
bool still_rises(const Series& series);
/// Why it is not looked for; empty where it is.
std::string why_no_growth(const SeriesReport& report, const SeriesOptions& options);

/// "there is 1 sample; it takes at least 6"
std::string too_few_samples(size_t samples);

std::optional<Spikes> find_spikes(const Series& series);
/// Nothing where memory does not rise.
std::optional<LargestRise> find_rise(const Series& series);
/// All of it but for little. Where it is neither this nor kept, too little was given back to tell.
bool is_released(const LargestRise& rise, const Series& series);
/// A part was given back, and much was not.
bool is_kept(const LargestRise& rise, const Series& series);
std::optional<Cycles> find_cycles(const Series& series, const std::optional<Spikes>& spikes);
/// "every 2 s", "about every 2 s", or that there is no period, by Cycles::period_spread.
std::string pace_words(double period_spread, const std::string& period);

Score score_series(const SeriesReport& report, const Series& series, const SeriesAnswers& answers,
                   const SeriesOptions& options);
/// The value of a score, of the parts that have one; nothing where none has.
std::optional<double> weighted_mean(const std::vector<ScorePart>& parts);

// When memory that is sampled will meet its limit, if it goes on as it did.

struct Forecast {
  std::optional<double> seconds_to_limit;  ///< after the last sample; absent where there is a reason
  std::optional<double> earliest_s;        ///< with the upper end of the rate's 95 % interval
  std::optional<double> latest_s;          ///< with its lower end; absent where that is no growth
  std::optional<double> bytes_per_second;  ///< Theil-Sen
  size_t points = 0;                       ///< that were looked at
  double window_s = 0;
  std::string reason;  ///< why there is no forecast
};

/// `times_s` ascend; both of one length. Where memory falls and rises again, as with every step of
/// a training, its local maxima are what will meet the limit: of these the trend is told, where
/// growth_of_ceiling() tells growth. The line is then raised to the highest point above it.
Forecast forecast_limit(std::span<const double> times_s, std::span<const double> bytes,
                        std::optional<double> limit_bytes);

}  // namespace gpumemprof

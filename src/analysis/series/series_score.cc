// The score: a weighted mean of parts, each 0 to 10 by a formula of docs/scores.md. A part that the
// series cannot tell is left out and says so; nothing is filled in.
#include <algorithm>
#include <cmath>

#include "analysis/series/series.h"

namespace gpumemprof {
namespace {

constexpr double kBest = 10;
constexpr double kComfortable = 0.8;  // of the limit; above it the part falls to 0 at the limit
constexpr double kLeakCosts = 4;      // a leak, however slow, is no good score
constexpr const char* kStillRises =
    "memory rises to the end, but not evenly enough to tell whether it goes on";

ScorePart known(const char* name, double weight, double value, const char* reason) {
  return {name, weight, std::clamp(value, 0.0, kBest), reason};
}

ScorePart peak_part(const SeriesReport& report, const SeriesOptions& options) {
  if (!options.limit_bytes || *options.limit_bytes <= 0) {
    return {"peak", 3, std::nullopt, "the limit of this memory is not known"};
  }
  const double share = report.peak_bytes / *options.limit_bytes;
  const double value = kBest * (1 - (share - kComfortable) / (1 - kComfortable));
  return known("peak", 3, value, "peak against the limit");
}

ScorePart growth_part(const SeriesAnswers& answers) {
  if (answers.still_rises) return {"growth", 4, std::nullopt, kStillRises};
  if (!answers.growth) return known("growth", 4, kBest, "the minimum does not grow");
  const Growth& growth = *answers.growth;
  const double share =
      growth.start_bytes <= 0 ? 1 : std::min(1.0, growth.bytes / growth.start_bytes);
  return known("growth", 4, kBest - kLeakCosts - (kBest - kLeakCosts) * share,
               "growth against the initial level");
}

ScorePart cleanup_part(const Series& series, const SeriesAnswers& answers) {
  if (series.end < 10) return {"cleanup", 1.5, std::nullopt, "fewer than 10 samples"};
  const std::optional<LargestRise>& rise = answers.rise;
  if (rise && is_kept(*rise, series)) {
    return known("cleanup", 1.5, kBest * (1 - rise->kept_share()),
                 "the part of a rise that was kept");
  }
  // Nothing is released of what still grows; that is the growth's part.
  if (answers.growth) return {"cleanup", 1.5, std::nullopt, "memory grows to the end"};
  if (!rise) return known("cleanup", 1.5, kBest, "memory did not rise after the warm-up");
  if (is_released(*rise, series)) return known("cleanup", 1.5, kBest, "the rise was released");
  return {"cleanup", 1.5, std::nullopt,
          rise->is_settled ? "less than a fifth of the rise was released"
                           : "memory still moves at the end"};
}

ScorePart spikes_part(const Series& series, const SeriesAnswers& answers) {
  if (series.end < 10) return {"spikes", 1.5, std::nullopt, "fewer than 10 samples"};
  if (!answers.spikes) return known("spikes", 1.5, kBest, "no spike was found");
  const double share =
      series.level <= 0 ? 1 : std::min(1.0, answers.spikes->highest_above_bytes / series.level);
  return known("spikes", 1.5, kBest * (1 - share), "highest spike against the level");
}

ScorePart fragmentation_part(const SeriesOptions& options) {
  if (!options.free_blocks) {
    return {"fragmentation", 2, std::nullopt, "sizes of free blocks are not in a series"};
  }
  const FreeBlocks& free = *options.free_blocks;
  if (free.free_bytes <= 0) return known("fragmentation", 2, kBest, "no free block");
  return known("fragmentation", 2, kBest * free.largest_free_block_bytes / free.free_bytes,
               "largest free block against all free bytes");
}

}  // namespace

std::string too_few_samples(size_t samples) {
  return (samples == 1 ? "there is 1 sample"
                       : "there are " + std::to_string(samples) + " samples") +
         "; it takes at least " + std::to_string(kLeastSamples);
}

Score score_series(const SeriesReport& report, const Series& series, const SeriesAnswers& answers,
                   const SeriesOptions& options) {
  Score score;
  if (series.size() < kLeastSamples) {
    score.reason = too_few_samples(series.size());
    return score;
  }
  if (score.reason = why_no_growth(report, options); !score.reason.empty()) return score;
  score.parts = {peak_part(report, options), growth_part(answers), cleanup_part(series, answers),
                 spikes_part(series, answers), fragmentation_part(options)};
  if (answers.still_rises) {
    score.reason = kStillRises, score.hides_growth = true;
    return score;
  }
  score.value = weighted_mean(score.parts);
  return score;
}

std::optional<double> weighted_mean(const std::vector<ScorePart>& parts) {
  double sum = 0, weights = 0;
  for (const ScorePart& part : parts) {
    if (part.value) sum += *part.value * part.weight, weights += part.weight;
  }
  return weights > 0 ? std::optional(sum / weights) : std::nullopt;
}

double rank_of_score(const Score& score) {
  if (score.value) return *score.value;
  return score.hides_growth ? kBest - kLeakCosts : HUGE_VAL;
}

}  // namespace gpumemprof

// The questions to a series, one by one. analyze_series() asks them all.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/series/series.h"

namespace gpumemprof {

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

/// The floor of memory rises and goes on rising.
struct Growth {
  double bytes = 0;             ///< of the retained floor
  double bytes_per_second = 0;  ///< Theil-Sen over the floor
  double z = 0, tau = 0;        ///< Mann-Kendall over the floor
  double start_bytes = 0;       ///< the floor where the search began
  double rising_share = 0;      ///< of the samples that changed, those that rose
  size_t first_sample = 0;      ///< where the search began
};
std::optional<Growth> find_growth(const Series& series);
/// Where that is not found: memory is higher in the last samples than in the first two thirds, and
/// not by one step alone. Whether that goes on nobody knows.
bool still_rises(const Series& series);
/// Why it is not looked for; empty where it is.
std::string why_no_growth(const SeriesReport& report, const SeriesOptions& options);

/// "there is 1 sample; it takes at least 6"
std::string too_few_samples(size_t samples);

/// Samples that stand out from their surroundings and are gone after a few.
struct Spikes {
  std::vector<size_t> samples;
  std::vector<SpikeSample> in_warmup;  ///< as high as these; no reason to speak of spikes alone
  size_t highest = 0;
  double highest_above_bytes = 0;
  double z = 0;  ///< of the highest
};
std::optional<Spikes> find_spikes(const Series& series);

/// The rise to the highest level after the warm-up, and what was left of it.
struct LargestRise {
  double base_bytes = 0, peak_bytes = 0, final_bytes = 0;
  bool is_settled = true;  ///< memory does not move at the end
  double bytes() const { return peak_bytes - base_bytes; }
  double kept_bytes() const { return final_bytes - base_bytes; }
  double kept_share() const { return kept_bytes() / bytes(); }
};
/// Nothing where memory does not rise.
std::optional<LargestRise> find_rise(const Series& series);
/// All of it but for little. Where it is neither this nor kept, too little was given back to tell.
bool is_released(const LargestRise& rise, const Series& series);
/// A part was given back, and much was not.
bool is_kept(const LargestRise& rise, const Series& series);

/// Up and down again, at least three times.
struct Cycles {
  size_t count = 0;
  double period_s = 0;         ///< median from peak to peak
  double period_spread = 0;    ///< how far one usually is from that, as a share of it: the mean
  double amplitude_bytes = 0;  ///< median from valley to peak
};
std::optional<Cycles> find_cycles(const Series& series, const std::optional<Spikes>& spikes);
/// "every 2 s", "about every 2 s", or that there is no period, by Cycles::period_spread.
std::string pace_words(double period_spread, const std::string& period);

struct SeriesAnswers {
  std::optional<Growth> growth;
  bool still_rises = false;
  std::optional<Spikes> spikes;
  std::optional<LargestRise> rise;
  std::optional<Cycles> cycles;
};
Score score_series(const SeriesReport& report, const Series& series, const SeriesAnswers& answers,
                   const SeriesOptions& options);

}  // namespace gpumemprof

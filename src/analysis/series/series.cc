#include "analysis/series/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/statistics/statistics.h"
#include "base/duration.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr double kMiB = 1 << 20;
// Python itself, a log buffer, a growing list: below this nobody looks for a leak.
constexpr double kLeastMoveBytes = 256 * 1024;
// However much memory there is, growth by this much counts at the default sensitivity.
constexpr double kSurelyMuchBytes = 32 * kMiB;
constexpr double kDefaultSensitivity = 0.05;
constexpr double kLeastFragmentation = 0.5;

std::string size(double bytes) {
  return format_bytes(static_cast<uint64_t>(std::clamp(bytes, 0.0, 1e18)));
}

Series ordered(std::span<const double> times_s, std::span<const double> bytes) {
  std::vector<size_t> order;
  for (size_t i = 0; i < std::min(times_s.size(), bytes.size()); ++i) {
    if (std::isfinite(times_s[i]) && std::isfinite(bytes[i]) && bytes[i] >= 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](size_t i) { return times_s[i]; });
  Series series;
  for (size_t i : order) series.times_s.push_back(times_s[i]), series.bytes.push_back(bytes[i]);
  return series;
}

/// A program that ends gives everything back; that is no part of how it used memory. At most the
/// last tenth, where it lies below all between the warm-up and there, with the way down to it, which
/// may rest: a sample half way would look like a floor that had come back.
size_t end_before_teardown(const Series& series) {
  const size_t tenth = series.size() / 10;
  if (tenth == 0 || series.warmup + tenth >= series.size()) return series.size();
  const size_t kept = series.size() - tenth;
  const auto from = series.bytes.begin();
  const double least = *std::min_element(from + static_cast<std::ptrdiff_t>(series.warmup),
                                         from + static_cast<std::ptrdiff_t>(kept));
  size_t end = series.size();
  while (end > kept && series.bytes[end - 1] < least) --end;
  if (end == series.size()) return end;
  while (end > kept && series.bytes[end - 1] <= series.bytes[end - 2]) --end;
  while (series.bytes[end] == series.bytes[end - 1]) ++end;  // the level that it came from
  return end;
}

void measure(Series* series, double sensitivity) {
  series->warmup = series->size() >= 10 ? series->size() / 5 : 0;
  series->end = end_before_teardown(*series);
  const auto after = series->values_from(series->warmup);
  series->level = median({after.begin(), after.end()});
  series->least_move =
      std::clamp(sensitivity * series->level, kLeastMoveBytes,
                 std::max(kLeastMoveBytes, kSurelyMuchBytes * sensitivity / kDefaultSensitivity));
}

void add_growth(const Growth& growth, const SeriesOptions& options, SeriesReport* report) {
  const double left = options.limit_bytes ? *options.limit_bytes - report->last_bytes : 0;
  const double to_limit =
      options.limit_bytes && growth.bytes_per_second > 0 ? left / growth.bytes_per_second : -1;
  const bool soon = to_limit >= 0 && to_limit <= report->duration_s;
  const bool much = growth.bytes >= kSurelyMuchBytes && growth.bytes >= growth.start_bytes / 2;
  const Severity severity = soon || much ? Severity::kCritical : Severity::kWarning;
  const Evidence evidence = {{"growth_bytes", growth.bytes},
                             {"bytes_per_second", growth.bytes_per_second},
                             {"start_bytes", growth.start_bytes},
                             {"rising_share", growth.rising_share},
                             {"mann_kendall_z", growth.z},
                             {"kendall_tau", growth.tau},
                             {"first_sample", static_cast<double>(growth.first_sample)}};
  const std::string how = "the minimum rose by " + size(growth.bytes) + " after the warm-up (" +
                          size(growth.bytes_per_second) + "/s) and went on rising";
  report->findings.push_back(
      {"monotonic_increase", severity,
       fmt::format("Memory shows monotonic increase in {:.0f}% of samples: ",
                   100 * growth.rising_share) +
           how,
       growth.bytes, growth.tau, evidence});
  report->patterns.push_back(
      {"steady_growth", severity, "Memory grows steadily: " + how, evidence});
  report->insights.push_back({"growth",
                              "Memory grew by " + size(growth.bytes_per_second * 3600) + " an hour",
                              {{"bytes_per_second", growth.bytes_per_second}}});
  if (to_limit < 0) return;
  report->insights.push_back(
      {"limit",
       "At this rate the limit of " + size(*options.limit_bytes) + " is reached " +
           format_seconds(to_limit) + " after the last sample",
       {{"time_to_limit_s", std::max(0.0, to_limit)}, {"limit_bytes", *options.limit_bytes}}});
}

void add_spikes(const Spikes& spikes, const Series& series, SeriesReport* report) {
  const bool high = spikes.highest_above_bytes >= series.level;
  const double when = series.times_s[spikes.highest] - series.times_s[0];
  Evidence evidence = {{"count", static_cast<double>(spikes.samples.size())},
                       {"highest_above_bytes", spikes.highest_above_bytes},
                       {"highest_bytes", series.bytes[spikes.highest]},
                       {"seconds_after_start", when}};
  if (spikes.z > 0) evidence.emplace_back("robust_z", spikes.z);
  const std::string what =
      (spikes.samples.size() == 1 ? "Memory spikes: 1 sample stands out, by "
                                  : fmt::format("Memory spikes: {} samples stand out, the highest "
                                                "by ",
                                                spikes.samples.size())) +
      size(spikes.highest_above_bytes) + ", " + format_seconds(when) + " after the first sample";
  // How far beyond the threshold; certain where nothing else ever moved.
  const double confidence = spikes.z > 0 ? 1 - 1 / (spikes.z - 5) : 1;
  const Severity severity = high ? Severity::kWarning : Severity::kInfo;
  report->findings.push_back(
      {"spikes", severity, what, spikes.highest_above_bytes, confidence, evidence});
  report->patterns.push_back({"spike", severity, what, evidence});
}

void add_kept(const LargestRise& kept, SeriesReport* report) {
  const double left = kept.kept_bytes();
  const std::string description =
      kept.base_bytes > 0
          ? fmt::format("Final memory {:.1f}x initial memory: ", kept.final_bytes / kept.base_bytes)
          : "Memory does not return to its initial level: ";
  report->findings.push_back({"insufficient_cleanup",
                              left >= kept.base_bytes ? Severity::kWarning : Severity::kInfo,
                              description + size(left) + " of a rise of " +
                                  size(kept.bytes()) + " were not released",
                              left,
                              kept.kept_share(),
                              {{"kept_bytes", left},
                               {"initial_bytes", kept.base_bytes},
                               {"peak_bytes", kept.peak_bytes},
                               {"final_bytes", kept.final_bytes},
                               {"kept_share", kept.kept_share()}}});
}

void add_cycles(const Cycles& cycles, SeriesReport* report) {
  const Evidence evidence = {{"cycles", static_cast<double>(cycles.count)},
                             {"period_s", cycles.period_s},
                             {"amplitude_bytes", cycles.amplitude_bytes}};
  report->patterns.push_back({"sawtooth", Severity::kInfo,
                              fmt::format("Memory swings {} times by ", cycles.count) +
                                  size(cycles.amplitude_bytes) + ", " +
                                  pace_words(cycles.period_spread, format_seconds(cycles.period_s)),
                              evidence});
  report->insights.push_back(
      {"cycle",
       "One cycle takes " + format_seconds(cycles.period_s) + " and swings by " +
           size(cycles.amplitude_bytes) + " (medians)",
       evidence});
}

void add_fragmentation(const SeriesOptions& options, SeriesReport* report) {
  if (!options.free_blocks) {
    report->unknown.emplace_back(
        "fragmentation", "a series has no sizes of free blocks; cache slack is not fragmentation");
    return;
  }
  const FreeBlocks& free = *options.free_blocks;
  if (free.free_bytes < kMiB) return;
  const double index = 1 - free.largest_free_block_bytes / free.free_bytes;
  if (index < kLeastFragmentation) return;
  report->patterns.push_back({"fragmentation",
                              index >= 0.8 ? Severity::kCritical : Severity::kWarning,
                              "Of " + size(free.free_bytes) + " free, the largest block is " +
                                  size(free.largest_free_block_bytes),
                              {{"fragmentation_index", index},
                               {"free_bytes", free.free_bytes},
                               {"largest_free_block_bytes", free.largest_free_block_bytes}}});
}

void add_facts(const Series& series, SeriesReport* report) {
  report->samples = series.size(), report->warmup_samples = series.warmup;
  if (series.size() == 0) return;
  const auto peak = std::ranges::max_element(series.bytes);
  report->duration_s = series.times_s.back() - series.times_s.front();
  report->first_bytes = series.bytes.front(), report->last_bytes = series.bytes.back();
  report->least_bytes = *std::ranges::min_element(series.bytes), report->peak_bytes = *peak;
  report->peak_time_s = series.times_s[static_cast<size_t>(peak - series.bytes.begin())];
  report->mean_bytes = std::accumulate(series.bytes.begin(), series.bytes.end(), 0.0) /
                       static_cast<double>(series.size());
}

/// How much of the time memory was near its peak: little means that one moment costs it all.
void add_time_at_peak(const Series& series, SeriesReport* report) {
  double near = 0;
  for (size_t i = 1; i < series.size(); ++i) {
    if (series.bytes[i] >= 0.9 * report->peak_bytes)
      near += series.times_s[i] - series.times_s[i - 1];
  }
  if (report->duration_s <= 0 || report->peak_bytes <= 0) return;
  const double share = near / report->duration_s;
  report->insights.push_back({"peak",
                              "Memory was within 10 % of its peak of " + size(report->peak_bytes) +
                                  fmt::format(" for {:.1f} % of the time", 100 * share),
                              {{"share_of_time", share}, {"peak_bytes", report->peak_bytes}}});
}

}  // namespace

Series prepared(std::span<const double> times_s, std::span<const double> bytes,
                const SeriesOptions& options) {
  Series series = ordered(times_s, bytes);
  const bool is_usable = options.sensitivity > 0 && options.sensitivity <= 1;
  measure(&series, is_usable ? options.sensitivity : kDefaultSensitivity);
  return series;
}

std::string why_no_growth(const SeriesReport& report, const SeriesOptions& options) {
  if (report.duration_s >= options.least_growth_s) return {};
  return format_seconds(report.duration_s) + " of samples may be the program's start-up; it takes at least " +
         format_seconds(options.least_growth_s);
}

SeriesReport analyze_series(std::span<const double> times_s, std::span<const double> bytes,
                            const SeriesOptions& options) {
  SeriesReport report;
  const Series series = prepared(times_s, bytes, options);
  report.ignored_samples = std::max(times_s.size(), bytes.size()) - series.size();
  add_facts(series, &report);
  SeriesAnswers& answers = report.answers;
  if (series.size() >= kLeastSamples) {
    if (const auto why = why_no_growth(report, options); !why.empty()) {
      report.unknown.emplace_back("growth", why);
      report.unknown.emplace_back("score", why);
    } else {
      answers.growth = find_growth(series);
      answers.still_rises = !answers.growth && still_rises(series);
    }
    answers.spikes = find_spikes(series);
    answers.rise = find_rise(series);
    answers.cycles = find_cycles(series, answers.spikes);
    add_time_at_peak(series, &report);
  } else {
    const std::string why = too_few_samples(series.size());
    report.unknown.emplace_back("growth", why);
    report.unknown.emplace_back("score", why);
  }
  if (answers.growth) add_growth(*answers.growth, options, &report);
  if (answers.rise && is_kept(*answers.rise, series)) add_kept(*answers.rise, &report);
  if (answers.spikes) add_spikes(*answers.spikes, series, &report);
  if (answers.cycles) add_cycles(*answers.cycles, &report);
  add_fragmentation(options, &report);
  report.score = score_series(report, series, answers, options);
  if (answers.still_rises) {
    for (const char* question : {"growth", "score"})
      report.unknown.emplace_back(question, report.score.reason);
  }
  return report;
}

}  // namespace gpumemprof

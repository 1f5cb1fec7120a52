#include "analysis/series/recording_patterns.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <ranges>
#include <utility>

#include "analysis/finding_figure.h"
#include "analysis/leaks/leak_history.h"
#include "analysis/leaks/leak_limit.h"
#include "analysis/replay/snapshot_device.h"
#include "analysis/series/series.h"
#include "analysis/statistics/growth.h"
#include "analysis/statistics/statistics.h"
#include "analysis/statistics/worth.h"
#include "base/duration.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr size_t kLeastSteps = 12;       // as in the search for leaks
constexpr double kLeastAmplitude = 0.2;  // of the range, as of samples
constexpr uint64_t kLeastSwingBytes = 256 * 1024;
constexpr size_t kLeastSwings = 10;  // to tell spikes among them
constexpr double kLeakScore = 6;     // the best that growth has beside a leak, as of samples
constexpr double kBestScore = 10;
constexpr double kShareOfLoop = 0.25;  // of the level at the end: no score passes over that growth
constexpr double kShareOfPeak = 0.25;  // likewise, of what was made after the last step
constexpr double kMoreThanAStep = 1.5;  // steps
constexpr double kMostOfRises = 0.75;  // in as few places as a line is known to keep more
constexpr double kAllOfIt = 0.99;       // of what a trace adds: less is a library's workspace
constexpr size_t kLeastRegular = 3;  // spikes, to speak of a period

uint64_t whole(double value) { return value > 0 ? static_cast<uint64_t>(std::llround(value)) : 0; }

std::string size_text(double bytes) { return format_bytes(whole(bytes)); }

using Figures = std::vector<std::pair<std::string, uint64_t>>;

class Patterns {
 public:
  Patterns(const Analysis& analysis, const Tables& tables, std::optional<uint64_t> capacity_bytes,
           DeviceAnalysis* device)
      : tables_(tables), start_ns_(analysis.start_time_ns), device_(*device) {
    const bool has_steps = device->step_levels.levels().size() >= kLeastSteps;
    const RecordingLevels of_timeline =
        levels_of_timeline(device->timeline, bytes_before_exit(*device));
    const RecordingLevels of_steps = levels_of_steps(device->step_levels);
    levels_ = has_steps ? of_steps : of_timeline;
    levels_.step_s = of_steps.step_s;
    counts_steps_ = has_steps || steps_span_the_run(*device);
    look_for_cycles();
    SeriesOptions options;
    if (const auto limit = memory_limit(device->device, tables, capacity_bytes)) {
      options.limit_bytes = static_cast<double>(*limit);
    }
    floor_ = analyze_series(levels_.times_s, levels_.floor, options);
    ceiling_ = analyze_series(levels_.ceiling_times_s, levels_.ceiling, options);
    whole_ = analyze_series(of_timeline.ceiling_times_s, of_timeline.ceiling, options);
    for (const Finding& finding : analysis.findings) {
      const bool is_here = finding.device == device->device ||
                           std::ranges::find(device->parts, finding.device) != device->parts.end();
      if (!is_here) continue;
      if (tells_growth_by_line(finding)) told_bytes_ += static_cast<double>(grown_bytes(finding));
      if (finding.kind == FindingKind::kGrowthInLoop) {
        why_no_growth_ = "what grows in its loop may be needed or a leak";
        loop_bytes_ += static_cast<double>(grown_bytes(finding));
        if (!loop_ || grown_bytes(*loop_) < grown_bytes(finding)) loop_ = &finding;
        if (const uint64_t* times = find_figure(finding, "times"))
          few_times_ = std::max<size_t>(few_times_, *times);
      }
      if (finding.kind == FindingKind::kFillsToLimit || finding.kind == FindingKind::kSizesRise) {
        harmless_bytes_ += static_cast<double>(grown_bytes(finding));
        why_harmless_ = finding.kind == FindingKind::kSizesRise ? "each pass makes larger blocks"
                        : find_figure(finding, "entries") && !find_fact(finding, "entries_limit")
                            ? "a deque fills up to its maxlen"
                            : "what grows fills up to a limit";
      }
      if (finding.kind != FindingKind::kLeak || finding.severity == Severity::kInfo) continue;
      has_leak_ = true;
      leaked_bytes_ += static_cast<double>(grown_bytes(finding));
    }
  }

  std::vector<Finding> find() {
    find_growth();
    find_sawtooth();
    find_spikes();
    score();
    return std::move(findings_);
  }

 private:
  void add(FindingKind kind, Severity severity, std::string title, double bytes, double confidence,
           Figures figures) {
    Evidence known;
    for (const auto& [name, value] : figures) known.emplace_back(name, static_cast<double>(value));
    device_.patterns.push_back({finding_kind_name(kind), severity, title, std::move(known)});
    findings_.push_back({.kind = kind,
                         .severity = severity,
                         .title = std::move(title),
                         .bytes = whole(bytes),
                         .evidence = std::move(figures),
                         .confidence = confidence,
                         .device = device_.device});
  }

  /// Over the steps themselves: how long each takes is another matter.
  double bytes_a_step() const {
    const std::vector<double> steps(levels_.steps.begin(), levels_.steps.end());
    return theil_sen_slope(steps, levels_.floor);
  }

  /// Of a snapshot, which has no steps: a forward pass made all that its trace adds, and nothing
  /// comes round. Such activations wait for their backward pass.
  bool is_one_forward() const {
    const SnapshotDevice* told = device_.snapshot.get();
    if (!told || told->is_recorded || levels_.are_steps || cycles_) return false;
    uint64_t forward_bytes = 0;
    for (const CategoryHolder& holder : device_.categories.at_peak) {
      if (holder.phase == WorkPhase::kForward) forward_bytes += holder.bytes;
    }
    const uint64_t peak_bytes = device_.figures.peak_bytes;
    const uint64_t added_bytes = peak_bytes - std::min(peak_bytes, told->live_before_bytes);
    return static_cast<double>(forward_bytes) >= kAllOfIt * static_cast<double>(added_bytes);
  }

  /// Most of what the floor rises by comes in so few steps: beside a line that is known to keep
  /// something then, what others keep then goes with it.
  bool comes_in_jumps(size_t times) const {
    const std::vector<double> kept = never_undercut(levels_.floor);
    std::vector<double> rises;
    for (size_t i = kept.size() / kSetUpPart + 1; i < kept.size(); ++i)
      rises.push_back(kept[i] - kept[i - 1]);
    if (rises.size() < 4 * times) return false;
    std::ranges::sort(rises, std::greater<>());
    const auto sum = [](auto begin, auto end) { return std::accumulate(begin, end, 0.0); };
    const auto last = rises.begin() + static_cast<ptrdiff_t>(times);
    return sum(rises.begin(), last) >= kMostOfRises * sum(rises.begin(), rises.end());
  }

  void find_growth() {
    const SeriesFinding* found = floor_.finding("monotonic_increase");
    if (!found) {
      if (why_no_growth_.empty() && rises_to_the_end(levels_))
        why_no_growth_ = "memory rose to the end, but too few times to tell";
      return;
    }
    if (rises_as_a_program_begins(levels_)) {
      if (why_no_growth_.empty())
        why_no_growth_ = "memory rose too few times, or for less than a second";
      return;
    }
    if (is_one_forward()) {
      why_no_growth_ = "the trace is within one forward pass";
      return;
    }
    const Growth& growth = *floor_.answers.growth;
    Figures figures = {
        {"growth_bytes", whole(growth.bytes)},
        {"start_bytes", whole(growth.start_bytes)},
        {"bytes_a_second", whole(growth.bytes_per_second)},
        {levels_.are_steps ? "steps" : "buckets", levels_.floor.size() * levels_.steps_a_level}};
    std::string pace = size_text(growth.bytes_per_second) + "/s";
    if (levels_.are_steps) {
      figures.emplace_back("bytes_a_step", whole(bytes_a_step()));
      figures.emplace_back("first_step", levels_.steps.front());
      figures.emplace_back("last_step", levels_.steps.back());
      pace = size_text(bytes_a_step()) + " a step, " + pace;
    }
    // Where a line is known, that is the finding. Without steps it may be data that is loaded.
    const bool is_harmless = harmless_bytes_ > 0 && 2 * harmless_bytes_ >= growth.bytes;
    if (is_harmless) why_no_growth_ = why_harmless_;
    const bool may_be_needed = few_times_ != 0 && comes_in_jumps(few_times_);
    const bool is_info = has_leak_ || is_harmless || may_be_needed || !levels_.are_steps ||
                         !is_worth_warning(cost_of_growth(growth.bytes, bytes_a_step()),
                                           device_.figures.peak_bytes);
    add(FindingKind::kSteadyGrowth, is_info ? Severity::kInfo : found->severity,
        "memory grows steadily: the minimum rose by " + size_text(growth.bytes) +
            " after the warm-up, " + pace,
        growth.bytes, found->confidence, std::move(figures));
    // Findings with lines have at least half of it: they say more of the same memory.
    const bool is_told = told_bytes_ > 0 && 2 * told_bytes_ >= growth.bytes;
    if (is_info && (has_leak_ || is_told)) return findings_.pop_back();
    // No step says what is kept from one to the next: what stayed to the end is a hint.
    const bool is_line_named =
        !levels_.are_steps && name_growing_line(device_, tables_, growth.bytes, &findings_.back());
    if (is_line_named) return;
    // Too much of it to be called a result, but what keeps half is known.
    if (loop_ && 2 * static_cast<double>(grown_bytes(*loop_)) >= growth.bytes) {
      Finding& finding = findings_.back();
      finding.title += "; half of that or more is kept at " + short_line(tables_, loop_->stack);
      finding.stack = loop_->stack, finding.fix = loop_->fix;
      return;
    }
    findings_.back().fix = fix_of_growth(device_);
  }

  /// Uses all turning points after set-up, whatever the period. Without steps, spikes are judged
  /// per cycle, because the number of buckets per cycle is arbitrary.
  void look_for_cycles() {
    if (device_.last_time_ns <= device_.first_time_ns) return;
    const uint64_t span = device_.last_time_ns - device_.first_time_ns;
    const std::vector<Turn>& all = device_.turns.all();
    std::vector<double> times, steps, bytes, high_times, highs;
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].time_ns < device_.first_time_ns + span / kSetUpPart) continue;
      times.push_back(seconds_between(all[i].time_ns, device_.first_time_ns));
      steps.push_back(steps_before(device_.step_levels, all[i].time_ns));
      bytes.push_back(static_cast<double>(all[i].bytes));
      if (i % 2 != 0) continue;  // the first turn is from up to down
      high_times.push_back(times.back());
      highs.push_back(bytes.back());
    }
    const Series series = prepared(times, bytes, {});
    const std::optional<Spikes> spikes = gpumemprof::find_spikes(series);
    cycles_ = find_cycles(series, spikes);
    // Counted step by step: how long each takes is another matter.
    if (counts_steps_) cycles_in_steps_ = find_cycles(prepared(steps, bytes, {}), spikes);
    if (!levels_.are_steps && cycles_ && highs.size() >= kLeastSwings) {
      levels_.ceiling_times_s = std::move(high_times), levels_.ceiling = std::move(highs);
      levels_.ceiling_start_ns = device_.first_time_ns;
      levels_.are_buckets = false;
    }
  }

  void find_sawtooth() {
    // Turns within a step need not be alike: there a step is the cycle.
    const bool is_within_steps = cycles_in_steps_ && cycles_in_steps_->period_s < kMoreThanAStep;
    if (!cycles_ || is_within_steps) return find_sawtooth_of_steps();
    const std::string period = format_seconds(cycles_->period_s);
    if (!cycles_in_steps_)
      return add_sawtooth(*cycles_, pace_words(cycles_->period_spread, period));
    const uint64_t steps = whole(cycles_in_steps_->period_s);
    add_sawtooth(*cycles_,
                 pace_words(cycles_in_steps_->period_spread,
                            std::to_string(steps) + " steps (" + period + ")"),
                 {{"period_steps", steps}});
  }

  /// Of turns within a step, and of those too low to be counted one by one: how far memory moves
  /// within a step.
  void find_sawtooth_of_steps() {
    if (!levels_.are_steps && !cycles_in_steps_) return;
    std::vector<double> amplitudes;
    double least = INFINITY, most = 0;
    const std::vector<StepLevel>& levels = device_.step_levels.levels();
    for (size_t i = levels.size() / kSetUpPart; i < levels.size(); ++i) {
      amplitudes.push_back(static_cast<double>(levels[i].most_bytes - levels[i].least_bytes));
      least = std::min(least, static_cast<double>(levels[i].least_bytes));
      most = std::max(most, static_cast<double>(levels[i].most_bytes));
    }
    const size_t count = amplitudes.size();
    const double amplitude = median(std::move(amplitudes));
    if (amplitude < kLeastSwingBytes || amplitude < kLeastAmplitude * (most - least)) return;
    const std::string step = format_seconds(levels_.step_s);
    if (const Cycles several = cycles_within_steps(device_); several.count > 1) {
      return add_sawtooth({.count = count * several.count,
                           .period_s = levels_.step_s / static_cast<double>(several.count),
                           .amplitude_bytes = several.amplitude_bytes},
                          std::to_string(several.count) + " times a step of " + step,
                          {{"cycles_a_step", several.count}});
    }
    add_sawtooth({.count = count * levels_.steps_a_level,
                  .period_s = levels_.step_s,
                  .amplitude_bytes = amplitude},
                 "once a step (" + step + ")", {{"period_steps", 1}});
  }

  void add_sawtooth(const Cycles& cycles, const std::string& pace,
                    const Figures& more = {}) {
    Figures figures = {{"cycles", cycles.count},
                       {"period_ns", whole(cycles.period_s * 1e9)},
                       {"amplitude_bytes", whole(cycles.amplitude_bytes)}};
    figures.insert(figures.end(), more.begin(), more.end());
    add(FindingKind::kSawtooth, Severity::kInfo,
        "memory swings by " + size_text(cycles.amplitude_bytes) + " " + pace,
        cycles.amplitude_bytes, 1, std::move(figures));
  }

  /// Which levels they are; of one that lasts for several buckets the highest.
  std::vector<size_t> spikes() const {
    const std::vector<size_t>& samples = ceiling_.answers.spikes->samples;
    if (!levels_.are_buckets) return samples;
    std::vector<size_t> out;
    size_t before = SIZE_MAX;
    for (const size_t i : samples) {
      if (out.empty() || i != before + 1) {
        out.push_back(i);
      } else if (levels_.ceiling[i] > levels_.ceiling[out.back()]) {
        out.back() = i;
      }
      before = i;
    }
    return out;
  }

  /// With those of the warm-up that come as regularly before them: an evaluation of every epoch may
  /// begin with the first. `bytes`: the highest above its surroundings.
  std::vector<size_t> with_earlier(std::vector<size_t> at, double* bytes) const {
    if (!levels_.are_steps) return at;
    for (const SpikeSample& early : ceiling_.answers.spikes->in_warmup | std::views::reverse) {
      std::vector<size_t> longer = {early.sample};
      longer.insert(longer.end(), at.begin(), at.end());
      if (!regular_gap(longer)) continue;
      at = std::move(longer);
      *bytes = std::max(*bytes, early.above_bytes);
    }
    return at;
  }

  void find_spikes() {
    const SeriesFinding* found = ceiling_.finding("spikes");
    if (!found) return;
    if (counts_steps_ && !levels_.are_steps) {
      why_no_spike_ = "of fewer than 12 steps none is an exception";
      return;
    }
    double bytes = found->bytes;
    const std::vector<size_t> at = with_earlier(spikes(), &bytes);
    const auto highest =
        *std::ranges::max_element(at, {}, [&](size_t i) { return levels_.ceiling[i]; });
    // The last of those that come regularly may come after all steps.
    const double least_bytes = levels_.ceiling[highest] - bytes / 2;
    const std::optional<double> to_end = gap_to_the_end(at, least_bytes);
    const std::optional<double> gap = to_end ? to_end : regular_gap(at);
    Figures figures = {{"count", at.size() + (to_end ? 1 : 0)},
                       {"highest_above_bytes", whole(bytes)},
                       {"highest_bytes", whole(levels_.ceiling[highest])}};
    std::string where;
    if (levels_.are_steps) {
      figures.emplace_back("step", levels_.steps[highest]);
      where = "in " + std::to_string(at.size()) + " of " + std::to_string(levels_.ceiling.size()) +
              " steps" + (to_end ? " and after the last one" : "") + ", highest in step " +
              std::to_string(levels_.steps[highest]);
    } else {
      const double when = levels_.ceiling_times_s[highest];
      figures.emplace_back("after_first_event_ns", whole(when * 1e9));
      where = std::to_string(at.size()) + (at.size() == 1 ? " time" : " times") + ", highest " +
              format_seconds(when + seconds_between(levels_.ceiling_start_ns, start_ns_)) +
              " after the first event";
    }
    // A spike is an exception: of no rule without steps, and none where it comes regularly.
    if (gap) {
      add_period(*gap, at, &figures, &where);
      why_no_spike_ = "the spikes are regular, like the program's own work";
    }
    if (device_name(tables_.devices[device_.device]) == "shared memory")
      why_no_spike_ = "how many batches wait to be taken depends on who is faster";
    if (!levels_.are_steps) why_no_spike_ = "without steps a spike cannot be told from normal work";
    add(FindingKind::kSpike, why_no_spike_.empty() ? found->severity : Severity::kInfo,
        "memory spikes by up to " + size_text(bytes) + ": " + where, bytes, found->confidence,
        std::move(figures));
  }

  /// Levels from one to the next where these differ by at most a tenth, or by one; else nothing.
  static std::optional<double> regular_gap(const std::vector<size_t>& at) {
    if (at.size() < kLeastRegular) return std::nullopt;
    std::vector<double> gaps;
    for (size_t i = 1; i < at.size(); ++i) gaps.push_back(static_cast<double>(at[i] - at[i - 1]));
    const double usual = median(gaps);
    for (double gap : gaps) {
      if (std::abs(gap - usual) > std::max(1.0, usual / 10)) return std::nullopt;
    }
    return usual;
  }

  /// An evaluation that ends each epoch is in the step after it, the last one after all steps: the
  /// gap of both, where memory rises to `least_bytes` there, too. Of two epochs one is in a step.
  std::optional<double> gap_to_the_end(std::vector<size_t> at, double least_bytes) const {
    if (!levels_.are_steps) return std::nullopt;
    const Timeline& timeline = device_.timeline;
    const uint64_t last_ns = device_.step_levels.levels().back().end_ns;
    double most = 0;
    for (size_t i = 0; i < timeline.buckets().size(); ++i) {
      if (timeline.start_ns() + i * timeline.bucket_ns() < last_ns) continue;
      most = std::max(most, static_cast<double>(timeline.buckets()[i].max_bytes));
    }
    if (most < least_bytes) return std::nullopt;
    at.push_back(levels_.ceiling.size());
    if (at.size() < kLeastRegular) at.insert(at.begin(), 0);
    return regular_gap(at);
  }

  void add_period(double gap, const std::vector<size_t>& at, Figures* figures,
                  std::string* where) {
    std::vector<double> gaps_s;
    for (size_t i = 1; i < at.size(); ++i) {
      gaps_s.push_back(levels_.ceiling_times_s[at[i]] - levels_.ceiling_times_s[at[i - 1]]);
    }
    const double first_s = levels_.ceiling_times_s[at[0]] - levels_.ceiling_times_s[0];
    const double period_s = gaps_s.empty() ? first_s : median(std::move(gaps_s));
    figures->emplace_back("period_ns", whole(period_s * 1e9));
    if (levels_.are_steps) {
      const uint64_t steps = whole(gap * static_cast<double>(levels_.steps_a_level));
      figures->emplace_back("period_steps", steps);
      *where += steps == 1 ? ", in consecutive steps (" : ", every " + std::to_string(steps) + " steps (";
      *where += format_seconds(period_s) + ")";
    } else {
      *where += ", every " + format_seconds(period_s);
    }
  }

  /// How far what was live at the end is above all that any step had: it was made after the last
  /// one, and no step says whether it is given back.
  double raised_after_steps() const {
    if (!levels_.are_steps) return 0;
    const auto at_end = static_cast<double>(bytes_before_exit(device_));
    return std::max(0.0, at_end - std::ranges::max(levels_.ceiling));
  }

  /// A program that ends gives all back, so it is the highest of the last tenth, or what its last
  /// step did not have yet.
  double level_at_end() const {
    if (raised_after_steps() > 0) return static_cast<double>(bytes_before_exit(device_));
    const std::vector<double>& floor = levels_.floor;
    const size_t last = std::max<size_t>(1, floor.size() / 10);
    return *std::max_element(floor.end() - static_cast<ptrdiff_t>(last), floor.end());
  }

  /// What was made after the last step is much of the peak, and no line is known that keeps it.
  void note_raise_after_steps() {
    const double raised = raised_after_steps();
    is_raised_ = !has_leak_ && raised - harmless_bytes_ >
                                   kShareOfPeak * static_cast<double>(device_.figures.peak_bytes);
    if (!is_raised_ || !why_no_growth_.empty()) return;
    why_no_growth_ = size_text(raised) +
                     " more than any step had were allocated after the last step and live at the end";
  }

  /// The floor of a program that trains may hide what a line adds to it: no score is better than
  /// its leaks.
  void bound_by_leaks(ScorePart* growth) const {
    const double level = level_at_end();
    const double share = level > leaked_bytes_ ? leaked_bytes_ / level : 1;
    const double value = kLeakScore * (1 - share);
    if (growth->value && *growth->value <= value) return;
    growth->value = value;
    growth->reason = "growth by leaks against the level at the end";
  }

  /// By what the replay lost to fragmentation at the peak or where most was reserved, whichever is
  /// the larger share. Wholly free segments can be released.
  void score_fragmentation(ScorePart* part) const {
    const SnapshotDevice* told = device_.snapshot.get();
    if (!told || !told->is_consistent || !told->at_peak) return;
    const auto share_lost = [](const AllocatorMoment& moment) {
      const auto reserved = static_cast<double>(moment.figures.reserved_bytes);
      return reserved > 0 ? std::min(1.0, static_cast<double>(moment.pinned_bytes) / reserved) : 0;
    };
    const double at_peak = share_lost(*told->at_peak);
    const double at_most = told->at_most_reserved ? share_lost(*told->at_most_reserved) : 0;
    part->value = kBestScore * (1 - std::max(at_peak, at_most));
    part->reason = std::string("lost to fragmentation against reserved, ") +
                   (at_most > at_peak ? "where most was reserved" : "at the peak");
  }

  /// Growth and cleanup are questions to the floor, the peak to the whole timeline, spikes to the
  /// ceiling.
  void score() {
    Score& score = device_.score;
    if (floor_.score.parts.empty() || ceiling_.score.parts.empty() || whole_.score.parts.empty()) {
      score.reason = "too short: " + floor_.score.reason;
      return;
    }
    note_raise_after_steps();
    for (size_t i = 0; i < floor_.score.parts.size(); ++i) {
      const std::string& name = floor_.score.parts[i].name;
      const bool of_floor = name == "growth" || name == "cleanup";
      const SeriesReport& of = of_floor ? floor_ : name == "peak" ? whole_ : ceiling_;
      ScorePart& part = score.parts.emplace_back(of.score.parts[i]);
      const auto leave_out = [&](const std::string& why) { part.value.reset(), part.reason = why; };
      if (name == "growth" && has_leak_) bound_by_leaks(&part);
      if (name == "growth" && !why_no_growth_.empty() && !has_leak_) leave_out(why_no_growth_);
      // A rise that came back beside a leak is no praise.
      if (name == "cleanup" && has_leak_ && part.value == kBestScore)
        leave_out("a leak is not released");
      if (name == "spikes" && !why_no_spike_.empty()) leave_out(why_no_spike_);
      if (name == "fragmentation") score_fragmentation(&part);
    }
    score.hides_growth =
        is_raised_ || (!has_leak_ && loop_bytes_ > kShareOfLoop * level_at_end());
    if (score.hides_growth) {
      score.reason = why_no_growth_;
    } else if (score.value = weighted_mean(score.parts); !score.value) {
      score.reason = floor_.score.reason;
    }
  }

  const Tables& tables_;
  const uint64_t start_ns_;  // of the recording
  DeviceAnalysis& device_;
  RecordingLevels levels_;
  bool counts_steps_ = false;  // what goes up and down
  std::optional<Cycles> cycles_;           // of the turns
  std::optional<Cycles> cycles_in_steps_;  // the same, with the period in steps
  SeriesReport floor_, ceiling_, whole_;
  const Finding* loop_ = nullptr;  // the largest of growth in its loop
  bool has_leak_ = false;
  bool is_raised_ = false;  // note_raise_after_steps()
  double leaked_bytes_ = 0, loop_bytes_ = 0;
  size_t few_times_ = 0;  // how often a line that may be needed kept more; 0: none is known
  double told_bytes_ = 0;      // that findings with lines grew
  double harmless_bytes_ = 0;  // of growth that has another reason than a leak
  std::string why_harmless_;
  std::string why_no_growth_;  // empty: its part of the score is known
  std::string why_no_spike_;  // to be warned of, where there are some
  std::vector<Finding> findings_;
};

}  // namespace

void add_patterns(const Tables& tables, std::optional<uint64_t> capacity_bytes,
                  Analysis* analysis) {
  std::vector<Finding> found;
  analysis->score = {.reason = "nothing was allocated"};
  uint64_t scored_peak_bytes = 0;
  HighestOfType highest;
  const auto look = [&](DeviceAnalysis& device, bool is_part) {
    if (!is_part && device.device < tables.devices.size()) {
      const DeviceAnalysis*& known = highest[tables.devices[device.device].type];
      if (!known || device.figures.peak_bytes > known->figures.peak_bytes) known = &device;
    }
    if (device.timeline.buckets().empty()) return;  // of a snapshot: it has no events
    for (Finding& finding : Patterns(*analysis, tables, capacity_bytes, &device).find()) {
      if (!is_part) found.push_back(std::move(finding));
    }
    if (is_part) return;
    if (device.figures.peak_bytes == 0) return;
    const double rank = rank_of_score(device.score), worst = rank_of_score(analysis->score);
    const uint64_t peak_bytes = device.figures.peak_bytes;
    if (analysis->score.parts.empty() || rank < worst ||
        (rank == worst && peak_bytes > scored_peak_bytes))
      analysis->score = device.score, scored_peak_bytes = peak_bytes;
  };
  for (DeviceAnalysis& sum : analysis->sums) look(sum, false);
  for (DeviceAnalysis& device : analysis->devices) {
    const bool is_driver = device.device < tables.devices.size() &&
                           tables.devices[device.device].layer == Layer::kDriver;
    const auto is_part_of = [&](const DeviceAnalysis& sum) {
      return std::ranges::find(sum.parts, device.device) != sum.parts.end();
    };
    look(device, is_driver || std::ranges::any_of(analysis->sums, is_part_of));
  }
  drop_small_findings(highest, tables, &found);
  fold_like_findings(tables, &found);
  for (Finding& finding : found) analysis->findings.push_back(std::move(finding));
}

}  // namespace gpumemprof

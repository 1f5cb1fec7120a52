// Who the others wait for: by what all ranks enter together, else by the ends of their steps.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/ranks/find_ranks.h"
#include "analysis/statistics/statistics.h"
#include "base/duration.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kFewCollectives = 8;
constexpr size_t kFewOwnSteps = 4;
constexpr double kLeastLag = 0.05;  // of the time
constexpr double kLeastNs = 1e6;       // behind in each step
constexpr double kLeastWaitNs = 50e6;  // in all collectives

/// The longest wait is left out: at the first collective that is for who starts last.
void by_collectives(const JobSums& sums, JobRanks* job) {
  const auto span = static_cast<double>(sums.last_ns - sums.first_ns);
  for (const auto& [rank, late] : sums.arrivals) {
    const uint64_t waited_ns = late.waited_for_ns - late.longest_ns;
    const auto one = std::ranges::find(job->ranks, rank, &OneRank::rank);
    if (one != job->ranks.end()) one->last_in = late.last, one->waited_for_ns = waited_ns;
    const auto waited = static_cast<double>(waited_ns);
    if (2 * late.last < sums.collectives || waited < kLeastWaitNs || waited < kLeastLag * span)
      continue;
    job->stragglers.push_back(
        {rank, fmt::format("it was the last to enter {} of {} collectives; the other ranks waited "
                           "{} for it, {:.1f} % of the time",
                           late.last, sums.collectives, format_duration(waited_ns),
                           100 * waited / span)});
  }
}

/// How long after the median rank each rank ended a step, over the steps that all have ended.
void by_steps(const Analysis& analysis, JobRanks* job) {
  std::map<uint64_t, std::map<size_t, uint64_t>> ends;  // by step, rank
  for (size_t i = 0; i < job->ranks.size(); ++i) {
    const DeviceAnalysis* memory = memory_of(analysis, job->ranks[i]);
    if (memory == nullptr || memory->step_levels.steps_a_level() != 1) continue;
    for (const StepLevel& step : memory->step_levels.levels()) ends[step.step][i] = step.end_ns;
  }
  std::set<size_t> with_steps;
  for (const auto& [step, by_rank] : ends)
    for (const auto& [i, end_ns] : by_rank) with_steps.insert(i);
  std::erase_if(ends, [&](const auto& step) { return step.second.size() < with_steps.size(); });
  if (with_steps.size() < 2) return;
  std::map<size_t, std::vector<double>> lags;
  for (const auto& [step, by_rank] : ends) {
    std::vector<double> times;
    const uint64_t first = by_rank.begin()->second;
    for (const auto& [i, end_ns] : by_rank)
      times.push_back(static_cast<double>(end_ns) - static_cast<double>(first));
    const double middle = median(times);
    size_t at = 0;
    for (const auto& [i, end_ns] : by_rank) lags[i].push_back(times[at++] - middle);
  }
  for (auto& [i, of_rank] : lags) job->ranks[i].lag_ns = static_cast<int64_t>(median(of_rank));
}

void by_lags(JobRanks* job) {
  for (const OneRank& rank : job->ranks) {
    if (!rank.lag_ns || !rank.step_ns || rank.steps < kFewOwnSteps) continue;
    const auto lag = static_cast<double>(*rank.lag_ns);
    if (lag < kLeastNs || lag < kLeastLag * static_cast<double>(*rank.step_ns)) continue;
    job->stragglers.push_back(
        {rank.rank,
         fmt::format("it ends a step {} after the median rank; its steps take {}",
                     format_duration(static_cast<uint64_t>(*rank.lag_ns)),
                     format_duration(*rank.step_ns))});
  }
}

}  // namespace

void find_stragglers(const Analysis& analysis, const Tables& tables, const JobSums& sums,
                     JobRanks* job) {
  const bool is_aligned = std::ranges::all_of(
      tables.clocks, [](const MachineClock& clock) { return clock.error_ns.has_value(); });
  job->collectives = sums.collectives;
  if (!is_aligned) {
    job->why_no_stragglers = "the error of the clocks is not known";
    return;
  }
  by_steps(analysis, job);
  const bool has_lags =
      std::ranges::any_of(job->ranks, [](const OneRank& one) { return !!one.lag_ns; });
  const bool is_pipeline = std::ranges::any_of(
      job->parallelism, [](const Parallelism& one) { return one.kind == "pipeline"; });
  if (sums.collectives >= kFewCollectives) {
    by_collectives(sums, job);
  } else if (sums.collectives != 0) {
    // Who waits in a collective ends its step late, too.
    job->why_no_stragglers =
        fmt::format("only {} recorded", sums.collectives == 1
                                            ? "1 collective was"
                                            : fmt::format("{} collectives were", sums.collectives));
  } else if (is_pipeline) {
    job->why_no_stragglers = "the stages of a pipeline end a step one after another";
  } else if (has_lags) {
    by_lags(job);
  } else {
    job->why_no_stragglers = "no collectives and no steps of all ranks were recorded";
  }
}

}  // namespace gpumemprof

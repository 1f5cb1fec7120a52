#include "analysis/ranks/find_ranks.h"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/statistics/statistics.h"
#include "trace/holder_lines.h"

namespace gpumemprof {
namespace {

constexpr size_t kMostLines = 10;

bool is_child_of(const Process& child, const Process& parent) {
  return child.parent_pid == parent.pid && child.host == parent.host;
}

/// Of each process the memory that its peak is told of, an accelerator's before the host's.
std::map<uint32_t, const DeviceAnalysis*> main_memories(const Analysis& analysis,
                                                        const Tables& tables) {
  std::map<uint32_t, const DeviceAnalysis*> out;
  const auto is_better = [&](const DeviceAnalysis& one, const DeviceAnalysis* than) {
    if (than == nullptr) return true;
    const bool is_host = is_host_memory(tables.devices[one.device]);
    const bool was_host = is_host_memory(tables.devices[than->device]);
    return is_host != was_host ? was_host : one.figures.peak_bytes > than->figures.peak_bytes;
  };
  for (const DeviceAnalysis& device : analysis.devices) {
    if (device.device >= tables.devices.size() || device.figures.peak_bytes == 0) continue;
    const Device& memory = tables.devices[device.device];
    if (memory.layer == Layer::kDriver || is_host_blocks(memory)) continue;
    const DeviceAnalysis*& best = out[memory.process];
    if (is_better(device, best)) best = &device;
  }
  return out;
}

uint64_t peak_of(const std::map<uint32_t, const DeviceAnalysis*>& memories, uint32_t process) {
  const auto found = memories.find(process);
  return found == memories.end() ? 0 : found->second->figures.peak_bytes;
}

/// The process that is the rank: of its last try, not one that it started.
OneRank rank_of(uint32_t rank, const std::vector<uint32_t>& processes, const Tables& tables,
                const std::map<uint32_t, const DeviceAnalysis*>& memories) {
  OneRank out{.rank = rank, .process = processes.front(), .processes = processes.size()};
  std::vector<uint32_t> first;
  for (uint32_t one : processes) {
    const bool is_started_by_another = std::ranges::any_of(processes, [&](uint32_t other) {
      return other != one && is_child_of(tables.processes[one], tables.processes[other]);
    });
    if (!is_started_by_another) first.push_back(one);
  }
  if (first.empty()) first = processes;  // a damaged file's
  out.tries = first.size();
  out.process = *std::ranges::max_element(first, {}, [&](uint32_t one) {
    return std::pair(tables.processes[one].place.restarts, peak_of(memories, one));
  });
  return out;
}

void take_memory(const DeviceAnalysis& device, OneRank* rank) {
  rank->device = device.device;
  rank->peak_bytes = device.figures.peak_bytes, rank->peak_time_ns = device.figures.peak_time_ns;
  rank->steps = device.step_levels.steps();
  std::vector<double> between;
  const std::vector<StepLevel>& steps = device.step_levels.levels();
  for (size_t i = 1; i < steps.size(); ++i)
    between.push_back(static_cast<double>(steps[i].end_ns - steps[i - 1].end_ns));
  if (!between.empty() && device.step_levels.steps_a_level() == 1)
    rank->step_ns = static_cast<uint64_t>(median(std::move(between)));
  std::set<uint32_t> names;
  for (const CategoryHolder& holder : device.categories.at_peak) {
    if (holder.category != Category::kParameter || holder.name == 0) continue;
    names.insert(holder.name), rank->parameter_bytes += holder.bytes;
  }
  rank->parameters = names.size();
}

void take_end(const ProgramEnds& ends, const Process& process, OneRank* rank) {
  const auto take_code = [&](const std::optional<int>& code, const std::string& signal) {
    if (!code && signal.empty()) return;
    rank->end = !signal.empty() ? RankEnd::kSignal : *code ? RankEnd::kExitCode : RankEnd::kClean;
    rank->exit_code = code.value_or(0), rank->signal = signal;
  };
  if (process.exited_cleanly) rank->end = RankEnd::kClean;
  for (const ProgramEnd& run : ends.runs) {
    if (run.pid == process.pid && run.host == process.host) take_code(run.exit_code, run.signal);
    for (const ProcessExit& one : run.exits) {
      if (run.host == process.host && one.pid == process.pid && one.start_ticks == process.start_ticks)
        take_code(one.exit_code, one.signal);
    }
  }
  const bool was_refused = std::ranges::any_of(
      ends.refused, [&](const RefusedRequest& one) { return one.process.is(process); });
  if (was_refused) rank->end = RankEnd::kOutOfMemory;
}

/// Lines of the highest rank whose bytes differ from the median of all.
void take_lines(const Analysis& analysis, const Tables& tables, JobRanks* job) {
  std::map<uint32_t, std::vector<double>> by_line;  // by frame
  std::map<uint32_t, RankLine> of_highest;
  const auto frame_of = [&](uint32_t node) { return tables.stacks.node(node).frame; };
  size_t ranks = 0;
  for (const OneRank& rank : job->ranks) {
    const DeviceAnalysis* memory = memory_of(analysis, rank);
    if (memory == nullptr) continue;
    ++ranks;
    for (const HolderLine& line : group_by_line(memory->holders_at_peak, tables)) {
      by_line[frame_of(line.node)].push_back(static_cast<double>(line.bytes));
      if (&rank == &job->ranks[*job->highest])
        of_highest[frame_of(line.node)] = {.node = line.node, .bytes = line.bytes};
    }
  }
  for (auto& [frame, line] : of_highest) {
    std::vector<double>& all = by_line[frame];
    all.resize(ranks);  // it holds nothing elsewhere
    line.median_bytes = static_cast<uint64_t>(median(all));
    if (line.bytes > line.median_bytes) job->lines.push_back(line);
  }
  std::ranges::stable_sort(job->lines, std::ranges::greater(), [](const RankLine& line) {
    return line.bytes - line.median_bytes;
  });
  if (job->lines.size() > kMostLines) job->lines.resize(kMostLines);
}

void take_peaks(const Analysis& analysis, const Tables& tables, JobRanks* job) {
  std::vector<double> peaks;
  for (size_t i = 0; i < job->ranks.size(); ++i) {
    const OneRank& rank = job->ranks[i];
    if (!rank.device) continue;
    peaks.push_back(static_cast<double>(rank.peak_bytes));
    if (!job->highest || rank.peak_bytes > job->ranks[*job->highest].peak_bytes) job->highest = i;
  }
  if (peaks.empty()) return;
  job->least_peak_bytes = static_cast<uint64_t>(*std::ranges::min_element(peaks));
  job->median_peak_bytes = static_cast<uint64_t>(median(std::move(peaks)));
  take_lines(analysis, tables, job);
}

/// Whose memory counts at the peak though nobody saw when it ended: "rank 2", "3 ranks".
std::string ranks_in_doubt(const Analysis& analysis, const Tables& tables, const JobPeak& peak) {
  const auto has_ended = [](const ProgramEnd& run) { return run.state == RunState::kEnded; };
  if (!std::ranges::all_of(analysis.ends.runs, has_ended)) return {};
  std::set<uint32_t> ranks;
  for (const DeviceAnalysis& device : analysis.devices) {
    const size_t i = device.device;
    if (i >= std::min(peak.by_device.size(), tables.devices.size())) continue;
    if (peak.by_device[i] == 0) continue;
    const Process& process = tables.processes[tables.devices[i].process];
    if (process.rank && !end_in_job(tables, process) && device.last_time_ns < peak.time_ns)
      ranks.insert(*process.rank);
  }
  if (ranks.empty()) return {};
  return ranks.size() == 1 ? "rank " + std::to_string(*ranks.begin())
                           : std::to_string(ranks.size()) + " ranks";
}

void take_job_peak(const Analysis& analysis, const Tables& tables, const JobSums& sums,
                   JobRanks* job) {
  if (analysis.oldest_dropped) {
    job->why_no_job_peak = "the oldest events were dropped to save disk (--max-disk)";
    return;
  }
  const bool unaligned = std::ranges::any_of(
      tables.clocks, [](const MachineClock& clock) { return !clock.error_ns.has_value(); });
  if (unaligned) job->why_no_job_peak = "the error of the clocks is not known";
  const bool is_host = sums.accelerators.bytes == 0;
  const JobPeak& peak = is_host ? sums.host : sums.accelerators;
  if (peak.bytes == 0) {
    if (job->why_no_job_peak.empty())
      job->why_no_job_peak =
          job->ranks.size() == 1 ? "one rank alone was recorded" : "no allocation was recorded";
    return;
  }
  job->job_peak_bytes = peak.bytes, job->job_peak_ns = peak.time_ns;
  const std::string unseen = ranks_in_doubt(analysis, tables, peak);
  if (!unseen.empty() && job->why_no_job_peak.empty())
    job->why_no_job_peak = "nobody saw when " + unseen + " ended, so what was held then counts on";
  for (size_t i = 0; i < std::min(peak.by_device.size(), tables.devices.size()); ++i) {
    const uint32_t process = tables.devices[i].process;
    if (process >= tables.processes.size() || !tables.processes[process].rank) continue;
    const auto rank = std::ranges::find(job->ranks, *tables.processes[process].rank, &OneRank::rank);
    if (rank != job->ranks.end()) rank->at_job_peak_bytes += peak.by_device[i];
  }
}

void take_first_refusal(const Analysis& analysis, JobRanks* job) {
  std::optional<uint64_t> first_event;
  uint64_t ranks = 0;
  for (const OneRank& rank : job->ranks) {
    const DeviceAnalysis* memory = memory_of(analysis, rank);
    if (memory == nullptr || memory->refusals.empty()) continue;
    ++ranks;
    const Refusal& refusal = memory->refusals.front();
    if (first_event && refusal.event >= *first_event) continue;
    first_event = refusal.event;
    job->first_refusal = {.rank = rank.rank,
                          .device = memory->device,
                          .size_bytes = refusal.size_bytes,
                          .stack = refusal.stack,
                          .ended_it = rank.end == RankEnd::kOutOfMemory};
  }
  if (job->first_refusal) job->first_refusal->ranks = ranks;
}

void find_missing(JobRanks* job) {
  // Without the size of the job, what lies between its ranks must be there.
  const uint32_t size = job->world_size.value_or(job->ranks.back().rank + 1);
  uint32_t next = 0;
  const auto skip_to = [&](uint32_t rank) {
    if (rank <= next) return;
    job->missing_count += rank - next;
    for (; next < rank && job->missing.size() < JobRanks::kMostMissing; ++next)
      job->missing.push_back(next);
  };
  for (const OneRank& rank : job->ranks) {
    skip_to(rank.rank);
    next = rank.rank + 1;
  }
  skip_to(size);
}

}  // namespace

const DeviceAnalysis* memory_of(const Analysis& analysis, const OneRank& rank) {
  return rank.device ? find_device(analysis, *rank.device) : nullptr;
}

std::shared_ptr<const JobRanks> find_ranks(const Analysis& analysis, const Tables& tables,
                                           const JobSums& sums, bool has_names) {
  auto job = std::make_shared<JobRanks>();
  std::map<uint32_t, std::vector<uint32_t>> by_rank;
  std::set<std::string_view> hosts;
  for (size_t i = 0; i < tables.processes.size(); ++i) {
    const Process& process = tables.processes[i];
    if (!process.rank) continue;
    by_rank[*process.rank].push_back(static_cast<uint32_t>(i));
    hosts.insert(process.host);
    job->launcher = process.place.launcher;
    if (process.place.world_size > job->world_size.value_or(0))
      job->world_size = process.place.world_size;
  }
  if (by_rank.size() < 2 && job->world_size.value_or(1) < 2) return nullptr;
  const auto memories = main_memories(analysis, tables);
  const bool has_accelerators = std::ranges::any_of(memories, [&](const auto& one) {
    return !is_host_memory(tables.devices[one.second->device]);
  });
  for (const auto& [rank, processes] : by_rank) {
    OneRank one = rank_of(rank, processes, tables, memories);
    const auto memory = memories.find(one.process);
    // What a rank holds of the host is not compared with what others hold of their GPUs.
    const bool is_alike = memory != memories.end() &&
                          is_host_memory(tables.devices[memory->second->device]) != has_accelerators;
    if (is_alike) take_memory(*memory->second, &one);
    take_end(analysis.ends, tables.processes[one.process], &one);
    job->ranks.push_back(std::move(one));
  }
  job->hosts = hosts.size();
  find_missing(job.get());
  take_peaks(analysis, tables, job.get());
  take_job_peak(analysis, tables, sums, job.get());
  take_first_refusal(analysis, job.get());
  if (has_names) find_parallelism(analysis, tables, job.get());
  find_stragglers(analysis, tables, sums, job.get());
  if (!has_names) job->why_no_parallelism = "names are replaced";
  return job;
}

}  // namespace gpumemprof

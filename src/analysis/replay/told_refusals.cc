#include "analysis/replay/told_refusals.h"

#include <algorithm>
#include <map>
#include <ranges>
#include <string_view>
#include <tuple>

#include "allocator/config.h"
#include "analysis/held_attempt.h"
#include "analysis/pass/end_in_doubt.h"
#include "analysis/replay/snapshot_device.h"
#include "base/size.h"
#include "trace/holder_lines.h"
#include "trace/process_end.h"

namespace gpumemprof {
namespace {

/// What the device's allocator asked its driver for; the size itself where it is not known to ask.
uint64_t size_in_message(uint64_t size_bytes, const DeviceAnalysis& device) {
  if (!device.snapshot) return size_bytes;
  const auto config =
      parse_settings(device.snapshot->recorded_settings, device.snapshot->replay.release);
  return segment_size(size_bytes, config.value_or(AllocatorConfig{}));
}

/// Sets RefusedRequest::told: the last refusal of that process and device whose size the message
/// tells, else of another process: then `stack` is that one's.
void find_told_refusals(const Analysis& analysis, const Tables& tables, ProgramEnds* ends) {
  const auto tell = [&](RefusedRequest* refused, const auto& is_candidate) {
    for (const DeviceAnalysis& device : analysis.devices) {
      if (!refused->requested || refused->told || device.device >= tables.devices.size()) continue;
      if (!is_candidate(*refused, tables.devices[device.device])) continue;
      const PrintedSize& asked = *refused->requested;
      const auto is_told = [&](const Refusal& one) {
        const uint64_t bytes = size_in_message(one.size_bytes, device);
        const bool is_taken = std::ranges::any_of(ends->refused, [&](const RefusedRequest& other) {
          return other.told && other.told->device == device.device &&
                 other.told->number == one.number;
        });
        return !is_taken && bytes >= asked.least_bytes && bytes <= asked.most_bytes;
      };
      const auto latest = std::views::reverse(device.refusals);
      const auto found = std::ranges::find_if(latest, is_told);
      if (found == latest.end()) continue;
      refused->told = {device.device, found->number, found->size_bytes, found->live_bytes,
                       found->served_count, found->largest_served_bytes};
      if (is_of(*refused, tables.devices[device.device], tables.processes)) continue;
      refused->raised_again_from = tables.processes[tables.devices[device.device].process].pid;
      refused->stack = stack_lines(tables, found->stack);
    }
  };
  // What nobody caught came last.
  for (RefusedRequest& refused : std::views::reverse(ends->refused)) {
    tell(&refused, [&](const RefusedRequest& one, const Device& device) {
      return is_of(one, device, tables.processes);
    });
  }
  // The main process raises again what a worker of its could not allocate.
  for (RefusedRequest& refused : std::views::reverse(ends->refused)) {
    tell(&refused, [&](const RefusedRequest& one, const Device& device) {
      return device.process < tables.processes.size() && is_same_memory(one, device);
    });
  }
}

/// TensorFlow's message has a shape, from which a size may not follow, and its allocators round
/// what they are asked for: it is of the last request that they refused in that process.
void find_refusals_without_size(const Analysis& analysis, const Tables& tables,
                                ProgramEnds* ends) {
  for (RefusedRequest& refused : std::views::reverse(ends->refused)) {
    const bool is_of_tensorflow = refused.device.starts_with("tensorflow:");
    if ((refused.requested && !is_of_tensorflow) || refused.told) continue;
    const DeviceAnalysis* latest = nullptr;
    for (const DeviceAnalysis& device : analysis.devices) {
      if (device.refusals.empty() || device.device >= tables.devices.size()) continue;
      const Device& memory = tables.devices[device.device];
      if (!is_tensorflow(memory) || memory.process >= tables.processes.size()) continue;
      if (!refused.process.is(tables.processes[memory.process])) continue;
      if (!latest || device.refusals.back().event > latest->refusals.back().event) latest = &device;
    }
    if (latest == nullptr) continue;
    const Refusal& last = latest->refusals.back();
    refused.told = {latest->device, last.number, last.size_bytes, last.live_bytes,
                    last.served_count, last.largest_served_bytes};
  }
}

/// That which its `run` had when it began; absent where it had none, or nobody says.
std::optional<uint64_t> address_space_limit(uint32_t process, const ProgramEnds& ends,
                                            const Tables& tables) {
  for (const ProgramEnd& run : ends.runs) {
    if (tables.processes.size() == 1 || run.pid == tables.processes[process].pid)
      return run.address_space_limit_bytes;
  }
  return std::nullopt;
}

/// The last request of a program that failed, where it was refused: an exit code alone does not tell.
std::optional<RefusedRequest> caught_at_the_end(const ProgramEnds& ends, const Tables& tables,
                                                const Analysis& analysis) {
  for (const DeviceAnalysis& device : analysis.devices) {
    if (device.refusals.empty() || device.device >= tables.devices.size()) continue;
    const Device& memory = tables.devices[device.device];
    const Refusal& last = device.refusals.back();
    if (!gave_up_after(last.event, last_work_event(device, ends), memory.process, ends,
                       tables.processes))
      continue;
    const Process& process = tables.processes[memory.process];
    const uint64_t bytes = last.size_bytes;
    return RefusedRequest{
        .device = device_name(memory),
        .process = {.pid = process.pid, .start_ticks = process.start_ticks, .host = process.host},
        .requested = exact_size(bytes),
        .told = RefusedRequest::Told{device.device, last.number, bytes, last.live_bytes,
                                     last.served_count, last.largest_served_bytes},
        .rank = process.rank,
        .was_caught = true,
        .stack = stack_lines(tables, last.stack),
        .address_space_limit_bytes = address_space_limit(memory.process, ends, tables)};
  }
  return std::nullopt;
}

/// The processes to which exec() gave another program, which recorded what followed.
class Replaced {
 public:
  explicit Replaced(const Tables& tables) {
    for (const Process& process : tables.processes) {
      uint64_t& last = last_ns_[key(process)];
      last = std::max(last, process.first_time_ns);
    }
  }
  bool contains(const Process& process) const {
    return process.start_ticks != 0 && last_ns_.at(key(process)) > process.first_time_ns;
  }

 private:
  using Key = std::tuple<uint64_t, uint64_t, std::string_view>;
  static Key key(const Process& process) {
    return {process.pid, process.start_ticks, process.host};
  }
  std::map<Key, uint64_t> last_ns_;  // when the last program of a process began
};

/// A launcher's exit code does not tell which of its processes died.
std::vector<UnfinishedProcess> unfinished_processes(const ProgramEnds& ends, const Tables& tables,
                                                    const Analysis& analysis) {
  const auto has_failed = [](const ProgramEnd& run) { return run.exit_code.value_or(0) != 0; };
  std::vector<UnfinishedProcess> out;
  if (!ends.refused.empty() || std::ranges::none_of(ends.runs, has_failed)) return out;
  std::vector<uint64_t> last_ns(tables.processes.size());
  for (const DeviceAnalysis& device : analysis.devices) {
    if (device.device >= tables.devices.size()) continue;  // a damaged file's
    const uint32_t process = tables.devices[device.device].process;
    if (process < last_ns.size())
      last_ns[process] = std::max(last_ns[process], device.last_time_ns);
  }
  const Replaced replaced(tables);
  for (size_t i = 0; i < last_ns.size(); ++i) {
    const Process& process = tables.processes[i];
    if (last_ns[i] == 0 || ended_in_order(tables, process) || replaced.contains(process))
      continue;
    out.push_back({process.pid, process.rank, process.command,
                   last_ns[i] - std::min(last_ns[i], analysis.start_time_ns)});
  }
  std::ranges::stable_sort(out, {}, &UnfinishedProcess::last_event_ns);
  return out;
}

/// Null for a process that did not record.
const Process* recorded_process(const NamedProcess& named, const Tables& tables) {
  const auto found = std::ranges::find_if(
      tables.processes, [&](const Process& known) { return named.is(known); });
  return found == tables.processes.end() ? nullptr : &*found;
}

void tell_held_attempt(const HeldAttempt& held, const Tables& tables, Finding* finding) {
  const std::string bytes = format_bytes(held.bytes);
  finding->name = kHeldAttempt;
  finding->title += ", of which an attempt that was over held " + bytes;
  finding->evidence.emplace_back("held_by_attempt_bytes", held.bytes);
  finding->fix = "leave the except block before you try again at " +
                 short_line(tables, held.again) + ", and keep no exception: it holds the frames " +
                 "of the attempt at " + short_line(tables, headline_node(tables, held.stack)) +
                 ", and their " + bytes;
}

/// Of the refusals that ended a program those that no replay explains: a host's have none.
void add_refusal_findings(const ProgramEnds& ends, const Tables& tables, Analysis* analysis) {
  for (const RefusedRequest& refused : ends.refused) {
    if (!refused.told) continue;
    const DeviceAnalysis* device = find_device(*analysis, refused.told->device);
    if (!device || device->snapshot) continue;
    const auto event = std::ranges::find(device->refusals, refused.told->number, &Refusal::number);
    if (event == device->refusals.end()) continue;
    analysis->findings.push_back(
        {.kind = FindingKind::kOutOfMemory,
         .severity = Severity::kCritical,
         .title = format_bytes(event->size_bytes) + " were refused, with " +
                  format_bytes(event->live_bytes) + " live",
         .bytes = event->size_bytes,
         .evidence = {{"event_index", event->event},
                      {"asked_bytes", event->size_bytes},
                      {"live_bytes", event->live_bytes}},
         .stack = event->stack,
         .device = device->device});
    if (event->number != device->refusals.back().number) continue;
    if (const auto held = held_attempt(*device, tables))
      tell_held_attempt(*held, tables, &analysis->findings.back());
  }
}

/// How the first rank of a failed job ended; empty where none is known to have failed. Launchers end
/// the other ranks with SIGTERM and raise an error of their own.
std::string failure_of_ranks(const ProgramEnds& ends, const Tables& tables) {
  std::string by_code;
  for (const ProgramEnd& run : ends.runs) {
    for (const ProcessExit& exit : run.exits) {
      if (exit.signal.empty() && exit.exit_code.value_or(0) == 0) continue;
      const Process* process = recorded_process(
          {.pid = exit.pid, .start_ticks = exit.start_ticks, .host = run.host}, tables);
      if (!process || !process->rank) continue;
      const std::string rank = "rank " + std::to_string(*process->rank);
      if (!exit.signal.empty() && exit.signal != "SIGTERM" && exit.signal != "SIGINT")
        return exit.signal + " ended " + rank;
      if (by_code.empty() && exit.exit_code)
        by_code = rank + " ended with exit code " + std::to_string(*exit.exit_code);
    }
  }
  const auto raised = std::ranges::find_if(
      ends.uncaught, [](const UncaughtError& error) { return error.rank.has_value(); });
  if (raised != ends.uncaught.end())
    return raised->kind + " ended rank " + std::to_string(*raised->rank);
  return by_code;
}

}  // namespace

void take_reserve_limits(const ProgramEnds& ends, AllocatorSnapshot* snapshot) {
  for (size_t i = 0; i < snapshot->traces.size(); ++i) {
    for (const RefusedRequest& refused : ends.refused) {
      if (!is_of(refused, snapshot->tables.devices[i], snapshot->tables.processes)) continue;
      if (const auto limit = reserve_limit(refused)) snapshot->traces[i].reserve_limit = limit;
    }
  }
}

void add_program_ends(ProgramEnds ends, const Tables& tables, Analysis* analysis) {
  ends.unfinished = unfinished_processes(ends, tables, *analysis);
  const auto tell_rank = [&](auto& one) {
    if (const Process* process = recorded_process(one.process, tables)) one.rank = process->rank;
  };
  std::ranges::for_each(ends.uncaught, tell_rank);
  std::ranges::for_each(ends.refused, tell_rank);
  if (auto caught = caught_at_the_end(ends, tables, *analysis)) {
    ends.refused.push_back(std::move(*caught));
    find_failure(&ends);
  }
  const bool has_failed = !ends.failure.empty() && ends.refused.empty() &&
                          std::ranges::none_of(ends.runs, was_killed_by_the_kernel);
  if (std::string failure = has_failed ? failure_of_ranks(ends, tables) : ""; !failure.empty())
    ends.failure = std::move(failure);
  const std::string why_no_score =
      is_end_unknown(analysis->loss, tables, ends)
          ? "how the program ended is unknown, and its last events may be missing"
          : ends.failure;
  if (!why_no_score.empty()) {
    analysis->score = {.value = std::nullopt, .reason = why_no_score, .parts = {}};
    for (DeviceAnalysis& device : analysis->devices) device.score = analysis->score;
    for (DeviceAnalysis& sum : analysis->sums) sum.score = analysis->score;
  }
  find_told_refusals(*analysis, tables, &ends);
  find_refusals_without_size(*analysis, tables, &ends);
  add_refusal_findings(ends, tables, analysis);
  analysis->ends = std::move(ends);
}

const OomExplanation* explanation_of(const RefusedRequest& refused, const Analysis& analysis) {
  if (!refused.told) return nullptr;
  const DeviceAnalysis* device = find_device(analysis, refused.told->device);
  if (!device || !device->snapshot) return nullptr;
  const std::vector<OomExplanation>& all = device->snapshot->ooms;
  const auto own = std::ranges::find(all, refused.told->number, &OomExplanation::number);
  return own == all.end() || !device->snapshot->is_consistent ? nullptr : &*own;
}

}  // namespace gpumemprof

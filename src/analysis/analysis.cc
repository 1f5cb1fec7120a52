#include "analysis/analysis.h"

#include <absl/container/flat_hash_map.h>

#include <span>

#include "analysis/categories/categories.h"
#include "analysis/categories/mapped_files.h"
#include "analysis/driver/driver_memories.h"
#include "analysis/gatherer.h"
#include "analysis/leaks/leak_findings.h"
#include "analysis/pass/followed_pass.h"
#include "analysis/pass/held_bound.h"
#include "analysis/pass/host_sums.h"
#include "analysis/ranks/job_pass.h"
#include "analysis/replay/snapshot_device.h"
#include "trace/holder_lines.h"
#include "trace/live_state_apply.h"

namespace gpumemprof {
namespace {

void take_temporaries(Gathered& gathered, DeviceAnalysis* device) {
  for (auto& [stack, temporary] : gathered.temporaries) {
    device->temporaries.push_back({stack, temporary.count, temporary.bytes});
    device->temporary_count += temporary.count;
    device->temporary_bytes += temporary.bytes;
  }
  std::sort(device->temporaries.begin(), device->temporaries.end(),
            [](const Temporary& a, const Temporary& b) {
              return a.count != b.count ? a.count > b.count : a.stack < b.stack;
            });
}

bool had_events(const DeviceFigures& figures) {
  return std::any_of(std::begin(figures.actions), std::end(figures.actions),
                     [](uint64_t n) { return n != 0; });
}

/// In the order of LiveState::holders_now().
std::vector<Holder> with_last_frees(const std::vector<Holder>& now,
                                    std::span<const LiveBlock> last_frees) {
  if (last_frees.empty()) return now;
  absl::flat_hash_map<uint32_t, Holder> sums;
  for (const Holder& holder : now) sums[holder.stack] = holder;
  for (const LiveBlock& block : last_frees) {
    Holder& sum = sums.try_emplace(block.stack, Holder{block.stack, 0, 0}).first->second;
    sum.bytes += block.size_bytes, ++sum.count;
  }
  std::vector<Holder> out;
  for (const auto& [stack, sum] : sums) out.push_back(sum);
  std::ranges::sort(out, comes_first);
  return out;
}

DeviceAnalysis take_device(const LiveState& state, uint16_t index, Gathered* gathered,
                           std::span<const LiveBlock> last_frees, uint64_t last_time_ns) {
  const DeviceState& figures = state.devices()[index];
  DeviceAnalysis device;
  device.device = index;
  device.figures = figures;
  device.own_peak_event = gathered->own_peak_event;
  device.unasked_at_peak_bytes = gathered->unasked.at_peak();
  device.holders_at_peak = state.holders_at_peak(index);
  device.holders_at_end = state.holders_now(index);
  device.holders_before_exit = with_last_frees(device.holders_at_end, last_frees);
  device.totals = totals_of(figures);
  device.lifetimes = gathered->lifetimes;
  device.timeline = std::move(gathered->timeline);
  device.timeline.finish(last_time_ns);
  device.turns = std::move(gathered->turns);
  device.most_held_bytes = gathered->held.most_bytes();
  device.threads = gathered->held.threads();
  device.refusals = std::move(gathered->refusals);
  device.last_alloc_event = gathered->last_alloc_event;
  device.first_time_ns = gathered->first_time_ns;
  device.last_time_ns = gathered->last_time_ns;
  device.steps = std::move(gathered->steps);
  take_temporaries(*gathered, &device);
  return device;
}

void take_devices(const LiveState& state, Gatherer& gatherer, const Tables& tables,
                  Analysis* analysis) {
  analysis->processes.resize(tables.processes.size());
  gatherer.devices.resize(state.devices().size());  // a device of the checkpoint alone has no event
  for (size_t i = 0; i < state.devices().size(); ++i) {
    const DeviceState& figures = state.devices()[i];
    if (!had_events(figures)) continue;
    // What the driver handed out is no memory beside the others: driver_memories.h tells of it.
    const bool is_known = i < tables.devices.size();
    if (is_known && is_unseen_malloc(tables.devices[i])) continue;  // a note, told by caveats()
    if (!is_known || !is_driver_memory(tables.devices[i])) {
      analysis->devices.push_back(take_device(state, static_cast<uint16_t>(i), &gatherer.devices[i],
                                              gatherer.last_frees(static_cast<uint16_t>(i)),
                                              analysis->last_time_ns));
    }
    if (i >= tables.devices.size() || tables.devices[i].process >= analysis->processes.size())
      continue;
    ProcessAnalysis& process = analysis->processes[tables.devices[i].process];
    for (uint64_t n : figures.actions) process.events += n;
    // The first holds what is counted already; the second is not of tensors.
    if (is_driver_memory(tables.devices[i]) || is_host_blocks(tables.devices[i])) continue;
    process.alloc_count += figures.actions[static_cast<size_t>(Action::kAlloc)];
    process.alloc_bytes += figures.total_bytes;
    process.unmatched_frees += figures.unmatched_frees;
  }
}

/// Where a process has but one allocator of that memory, it says all.
void take_sums(const HostSums& sums, const LiveState& state, Gatherer& gatherer,
               MomentGatherer& moments, const Tables& tables, Analysis* analysis) {
  gatherer.devices.resize(state.devices().size());
  absl::flat_hash_map<uint16_t, const DeviceAnalysis*> known;
  for (const DeviceAnalysis& device : analysis->devices) known.try_emplace(device.device, &device);
  for (const auto& [process, parts] : sums.parts()) {
    if (parts.size() < 2 || process >= state.devices().size()) continue;
    const auto index = static_cast<uint16_t>(process);
    DeviceAnalysis sum = take_device(state, index, &gatherer.devices[process],
                                     gatherer.last_frees(index), analysis->last_time_ns);
    sum.step_levels = moments.take_levels(index);
    sum.live_moments = moments.take_moments(index);
    // Prefer a part whose sizes are rounded: the sum is rounded then, too.
    const auto rounds = [&](uint16_t part) { return !tables.devices[part].size_is_requested; };
    const auto rounding = std::find_if(parts.begin(), parts.end(), rounds);
    sum.device = rounding == parts.end() ? parts.front() : *rounding;
    sum.parts = parts;
    sum.categories.why_not = "no operation that tells a type allocated them";
    std::fill(std::begin(sum.figures.actions), std::end(sum.figures.actions), 0);
    for (const uint16_t part : parts) {
      const auto device = known.find(part);
      if (device == known.end()) continue;
      for (size_t a = 0; a < kActionCount; ++a) {
        sum.figures.actions[a] += device->second->figures.actions[a];
      }
    }
    analysis->sums.push_back(std::move(sum));
  }
}

uint64_t recording_start(const Tables& tables, uint64_t first_event_ns) {
  uint64_t start = UINT64_MAX;
  for (const Process& process : tables.processes) {
    if (process.first_time_ns != 0) start = std::min(start, process.first_time_ns);
  }
  return start == UINT64_MAX ? first_event_ns : start;
}

void add_kept_after_set_up(const std::vector<ProcessHistory>& histories, const Tables& tables,
                           std::vector<DeviceAnalysis>* devices) {
  for (DeviceAnalysis& device : *devices) {
    const uint64_t span = device.last_time_ns - std::min(device.last_time_ns, device.first_time_ns);
    for (const ProcessHistory& history : histories) {
      if (history.process != tables.devices[device.device].process) continue;
      device.kept_after_set_up =
          kept_since(history, device.device, device.first_time_ns + span / kSetUpPart);
    }
  }
}

}  // namespace

Result<Analysis> analyze_source(EventSource& source, const AnalysisOptions& options,
                                const FollowedPass* followed) {
  Analysis analysis;
  LiveState state;
  if (const LiveState* before = source.state_before_first_event()) {
    state = *before;
    analysis.oldest_dropped = before->event_count() != 0;
  }
  Categories categories(source.tables(), options.keeper);
  if (followed) {
    for (const auto& [device, blocks] : followed->rules) categories.set_rules(device, &blocks);
  }
  MomentGatherer moments(options.moments, state, &categories);
  Gatherer gatherer(options, state, analysis.threads, source.info().can.times, moments,
                    &categories);
  gatherer.set_tables(source.tables());
  JobPass job(source.tables());
  if (job.is_job()) gatherer.set_job(&job);
  LeakGatherer leaks;
  const bool find_leaks = options.find_leaks && source.info().can.times;
  HolderStacks holders(options.holders);
  if (find_leaks) gatherer.set_leaks(&leaks, &holders, source.tables());
  DriverGatherer driver(options.truths);
  driver.seed(state, source.tables());
  HostSums sums;
  LiveState sum_state;
  std::vector<ThreadAnalysis> no_threads;
  MomentGatherer sum_moments(options.moments, sum_state, nullptr, true);
  Gatherer sum_gatherer(options, sum_state, no_threads, source.info().can.times, sum_moments);
  EventBatch batch;
  std::vector<uint32_t> numbers;  // of the batch's blocks, for the keeper
  for (;;) {
    Result<bool> more = source.next(&batch);
    if (!more) return std::unexpected(more.error());
    if (!*more) break;
    categories.begin_batch(batch, state);
    if (find_leaks) holders.take_steps(source.tables(), batch.marks);
    if (batch.size() != 0 && analysis.events_read == 0) {
      analysis.first_time_ns = batch.time_ns.front();
    }
    const uint64_t start_ns =
        options.start_ns.value_or(recording_start(source.tables(), analysis.first_time_ns));
    moments.begin_batch(batch, source.tables(), start_ns);
    if (job.is_job()) job.begin_batch(batch);
    // A checkpoint knows the state of each allocator, and the peak of none but these.
    const bool is_whole = !analysis.oldest_dropped;
    const auto begin_sums = [&] {
      const EventBatch* of_sums = is_whole ? sums.take(batch, source.tables()) : nullptr;
      if (of_sums) sum_moments.begin_batch(*of_sums, source.tables(), start_ns);
      return of_sums;
    };
    if (batch.size() == 0) {
      begin_sums();
      categories.end_batch();
      if (options.keeper) options.keeper->take(batch);
      continue;
    }
    analysis.last_time_ns = std::max(analysis.last_time_ns, batch.time_ns.back());
    analysis.events_read += batch.size();
    analysis.threads.resize(source.tables().threads.size());
    if (find_leaks) leaks.begin_batch(batch, source.tables(), state);
    state.apply_observed(batch, gatherer, options.keeper ? &numbers : nullptr);
    if (find_leaks) leaks.end_batch();
    // The driver's memory holds what the allocator took, not what it was asked for.
    const EventBatch* recorded = followed ? followed->source->recorded(batch) : &batch;
    if (recorded) driver.take(*recorded, source.tables());
    categories.end_batch();
    if (const EventBatch* of_sums = begin_sums()) sum_state.apply_observed(*of_sums, sum_gatherer);
    if (options.keeper) {  // the last to see it
      if (batch.block.empty()) batch.block.swap(numbers);
      options.keeper->take(batch);
      batch.block.clear();  // what comes back has the numbers of an earlier batch
    }
    if (options.on_progress) options.on_progress(source.progress());
  }
  analysis.source = source.info();
  analysis.events = state.event_count();
  analysis.temporary_ns = options.temporary_ns;
  analysis.start_time_ns =
      options.start_ns.value_or(recording_start(source.tables(), analysis.first_time_ns));
  analysis.driver = driver.finish(source.tables());
  if (job.is_job()) analysis.job_sums = std::make_shared<const JobSums>(job.finish());
  moments.finish(analysis.last_time_ns);
  sum_moments.finish(analysis.last_time_ns);
  take_devices(state, gatherer, source.tables(), &analysis);
  std::vector<ProcessHistory> histories;
  // Before the categories are final: what is kept has one name in both.
  if (find_leaks) {
    holders.finish(source.tables(), state);
    histories = leaks.finish(state, [&](uint16_t device) { return gatherer.last_frees(device); });
    add_served_requests(histories, &analysis.devices);
    add_kept_after_set_up(histories, source.tables(), &analysis.devices);
    add_leak_findings(histories, source.tables(),
                      {.capacity_bytes = options.capacity_bytes,
                       .host_rooms = options.host_rooms,
                       .ends = options.ends,
                       .holders = holders,
                       .categories = categories},
                      &analysis);
  }
  for (DeviceAnalysis& device : analysis.devices) {
    device.categories = categories.finish(device.device, state.devices()[device.device]);
    device.step_levels = moments.take_levels(device.device);
    device.live_moments = moments.take_moments(device.device);
  }
  add_graphs_at_end(histories, source.tables(), holders, &analysis);
  tell_inputs(source.tables(), &analysis);
  analysis.moments = categories.moments();
  take_sums(sums, sum_state, sum_gatherer, sum_moments, source.tables(), &analysis);
  analysis.threads.resize(source.tables().threads.size());
  analysis.loss = source.loss();
  const bool knows_threads = source.info().can.threads && !analysis.oldest_dropped;
  for (auto* devices : {&analysis.devices, &analysis.sums}) {
    for (DeviceAnalysis& device : *devices) {
      if (!knows_threads || !is_exact(analysis, device)) device.most_held_bytes.reset();
      // A checkpoint does not have it of the blocks that it begins with.
      if (analysis.oldest_dropped) device.unasked_at_peak_bytes = 0;
    }
  }
  return analysis;
}

std::string why_no_modules(const DeviceAnalysis& device) {
  if (!device.categories.is_by_rules) return "";
  const bool is_recorded = device.snapshot && device.snapshot->is_recorded;
  return is_recorded ? "the recording has no modules" : "a snapshot has no modules";
}

bool is_exact(const Analysis& analysis, const DeviceAnalysis& device) {
  return analysis.loss.has_every_event() && device.figures.repeated_allocs == 0;
}

const char* why_not_exact(const Analysis& analysis, const DeviceAnalysis& device) {
  const bool is_known = analysis.loss.events != 0 || device.figures.repeated_allocs != 0;
  return is_known ? "events were lost" : "events may have been lost";
}

bool has_requested_sizes(const DeviceAnalysis& device, const Tables& tables) {
  return device.snapshot != nullptr ||
         (device.device < tables.devices.size() && tables.devices[device.device].size_is_requested);
}

std::optional<uint64_t> peak_reserved_bytes(const DeviceAnalysis& device) {
  const SnapshotDevice* snapshot = device.snapshot.get();
  if (snapshot && snapshot->is_replayed) {
    if (!snapshot->is_consistent) return std::nullopt;
    return snapshot->replay.peak_reserved.bytes;
  }
  if (device.figures.has_totals == 0) return std::nullopt;
  return device.figures.peak_reserved_bytes;
}

uint64_t bytes_before_exit(const DeviceAnalysis& device) {
  uint64_t sum = 0;
  for (const Holder& holder : device.holders_before_exit) sum += holder.bytes;
  return sum;
}

uint64_t peak_allocated_bytes(const DeviceAnalysis& device) {
  const SnapshotDevice* snapshot = device.snapshot.get();
  if (snapshot && snapshot->is_replayed && snapshot->is_consistent)
    return snapshot->replay.peak_allocated.bytes;
  return device.figures.peak_bytes;
}

/// Which memory a report is about, the last first. Of a file that is mapped only what is touched
/// takes memory.
enum MemoryRank { kMaps, kMalloc, kTensors, kAccelerator };

static MemoryRank rank_of(const DeviceAnalysis& device, const Tables& tables) {
  const Device& memory = tables.devices[device.device];
  if (!is_host_memory(memory)) return kAccelerator;
  if (is_host_blocks(memory)) return memory.name == "malloc" ? kMalloc : kMaps;
  const uint64_t mapped = mapped_file_bytes(tables, device.device, device.holders_at_peak);
  return 2 * mapped > device.figures.peak_bytes ? kMaps : kTensors;
}

const DeviceAnalysis* main_device(const Analysis& analysis, const Tables& tables,
                                  const std::function<bool(const DeviceAnalysis&)>& is_asked) {
  const DeviceAnalysis* best = nullptr;
  int best_rank = kMaps;
  const auto consider = [&](const DeviceAnalysis& device) {
    if (device.figures.peak_bytes == 0 || (is_asked && !is_asked(device))) return;
    const bool is_known = device.device < tables.devices.size();
    // The regions that a pool is made of hold its blocks, which are what was asked for.
    if (is_known && tables.devices[device.device].layer == Layer::kDriver) return;
    const int rank = is_known ? rank_of(device, tables) : kTensors;
    const bool better = best == nullptr || rank > best_rank ||
                        (rank == best_rank &&
                         device.figures.peak_bytes > best->figures.peak_bytes);
    if (!better) return;
    best = &device;
    best_rank = rank;
  };
  for (const DeviceAnalysis& sum : analysis.sums) consider(sum);  // never below one of its parts
  for (const DeviceAnalysis& device : analysis.devices) consider(device);
  return best;
}

std::string memory_name(const DeviceAnalysis& device, const Tables& tables) {
  const auto name = [&](uint16_t index) {
    return index < tables.devices.size() ? device_name(tables.devices[index]) : "unknown";
  };
  if (device.parts.empty()) return name(device.device);
  std::string text;
  for (uint16_t part : device.parts) {
    const std::string one = name(part);
    const size_t colon = one.find(':');
    text += text.empty() ? one : " + " + one.substr(colon == one.npos ? 0 : colon + 1);
  }
  return text;
}

}  // namespace gpumemprof

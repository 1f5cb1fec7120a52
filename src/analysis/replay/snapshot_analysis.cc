#include "analysis/replay/snapshot_analysis.h"

#include <algorithm>
#include <future>

#include "analysis/categories/block_keeper.h"
#include "analysis/categories/snapshot_categories.h"
#include "analysis/finding.h"
#include "analysis/replay/snapshot_findings.h"
#include "trace/trace_source.h"

namespace gpumemprof {
namespace {

/// A device without events: what its segments say is all there is.
DeviceAnalysis without_events(const TraceSource& source, size_t index) {
  DeviceAnalysis device;
  device.device = static_cast<uint16_t>(index);
  const LiveState& state = *source.state_before_first_event();
  if (index < state.devices().size()) device.figures = state.devices()[index];
  device.holders_at_peak = state.holders_at_peak(device.device);
  device.holders_at_end = device.holders_before_exit = state.holders_now(device.device);
  return device;
}

/// Without times the age is unknown.
void drop_unknown_ages(DeviceAnalysis* device) {
  device->lifetimes = {};
  device->temporaries.clear();
  device->temporary_count = device->temporary_bytes = 0;
}

void add_device(Analysis&& part, Analysis* all) {
  const bool is_first = all->events_read == 0;
  all->events += part.events;
  all->events_read += part.events_read;
  all->temporary_ns = part.temporary_ns;
  if (part.events_read != 0 && part.source.can.times) {
    all->start_time_ns =
        is_first ? part.start_time_ns : std::min(all->start_time_ns, part.start_time_ns);
    all->last_time_ns = std::max(all->last_time_ns, part.last_time_ns);
    all->first_time_ns = all->start_time_ns;
  }
  all->processes.resize(std::max(all->processes.size(), part.processes.size()));
  for (size_t i = 0; i < part.processes.size(); ++i) {
    all->processes[i].events += part.processes[i].events;
    all->processes[i].alloc_count += part.processes[i].alloc_count;
    all->processes[i].alloc_bytes += part.processes[i].alloc_bytes;
    all->processes[i].unmatched_frees += part.processes[i].unmatched_frees;
  }
  for (DeviceAnalysis& device : part.devices) all->devices.push_back(std::move(device));
}

/// The first event with the highest requested bytes; none where it was so before the first one.
std::optional<uint64_t> peak_event_of(const DeviceAnalysis& device, uint64_t live_before) {
  if (device.figures.peak_bytes <= live_before) return std::nullopt;
  return device.figures.peak_event;
}

/// Of all events; absent where a device has none that have times.
std::optional<uint64_t> first_time(const AllocatorSnapshot& snapshot) {
  std::optional<uint64_t> first;
  for (const AllocatorTrace& trace : snapshot.traces) {
    if (trace.events.empty()) continue;
    if (!trace.has_times) return std::nullopt;
    const uint64_t time = TraceSource::time_of(trace, 0, trace.events[0].time_us);
    first = std::min(first.value_or(time), time);
  }
  return first;
}

}  // namespace

Result<Analysis> analyze_snapshot(const AllocatorSnapshot& snapshot,
                                  const SnapshotAnalysisOptions& options) {
  Analysis all;
  all.processes.resize(snapshot.tables.processes.size());
  const double share = snapshot.traces.empty() ? 1 : 1.0 / double(snapshot.traces.size());
  const std::optional<uint64_t> start_ns = first_time(snapshot);
  for (size_t i = 0; i < snapshot.traces.size(); ++i) {
    // Half of a device's time goes into its events, half into their replay.
    const auto report = [&](double half, double done) {
      if (options.on_progress) options.on_progress((double(i) + (half + done) / 2) * share);
    };
    const TraceStart start = trace_start(snapshot.traces[i]);
    TraceSource source(snapshot, i, start);
    uint64_t live_before = 0, count_before = 0;
    const LiveState& before = *source.state_before_first_event();
    if (i < before.devices().size()) {
      live_before = before.devices()[i].live_bytes;
      count_before = before.devices()[i].live_count;
    }
    if (options.keeper) {
      options.keeper->begin_trace(static_cast<uint16_t>(i), snapshot.traces[i], start);
    }
    Result<Analysis> part =
        analyze_source(source, {.timeline_buckets = options.timeline_buckets,
                                .moments = options.moments,
                                .start_ns = start_ns,
                                .keeper = options.keeper,
                                .on_progress = [&](double done) { report(0, done); }});
    if (!part) return std::unexpected(part.error());
    if (part->devices.empty()) part->devices.push_back(without_events(source, i));
    DeviceAnalysis& device = part->devices.front();
    if (!snapshot.traces[i].has_times) drop_unknown_ages(&device);
    device.holders_before_exit = device.holders_at_end;  // it is taken of a program that goes on
    SnapshotAnalysisOptions replaying = options;
    replaying.on_progress = [&](double done) { report(1, done); };
    const auto peak_event = peak_event_of(device, live_before);
    // Meanwhile, where the system has a thread left: neither asks the other.
    auto replay = std::async([&] {
      return std::make_shared<SnapshotDevice>(
          options.replays ? replay_device(snapshot, i, start, peak_event, replaying)
                          : describe_device(snapshot, i, peak_event));
    });
    uint64_t held = 0;
    for (const Holder& holder : device.holders_at_peak) held += holder.bytes;
    device.categories = categories_of_trace(snapshot, i, start, peak_event, held,
                                            static_cast<uint16_t>(i), options.keeper);
    const std::shared_ptr<SnapshotDevice> replayed = replay.get();
    replayed->live_before_bytes = live_before;
    replayed->live_before_count = count_before;
    if (options.replays) add_snapshot_findings(*replayed, device.device, &all.findings);
    device.snapshot = replayed;
    add_device(*std::move(part), &all);
  }
  all.source = snapshot.info;
  all.loss = snapshot.loss;
  return all;
}

std::optional<size_t> main_trace(const AllocatorSnapshot& snapshot) {
  std::optional<size_t> best;
  uint64_t most = 0;
  for (size_t i = 0; i < snapshot.traces.size(); ++i) {
    const AllocatorTrace& trace = snapshot.traces[i];
    if (trace.events.count(Action::kOom) != 0) return i;
    const uint64_t reserved = sum_segments(trace).reserved_bytes;
    if (best && reserved <= most) continue;
    best = i;
    most = reserved;
  }
  return best;
}

}  // namespace gpumemprof

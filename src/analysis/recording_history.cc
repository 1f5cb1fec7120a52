#include "analysis/recording_history.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "allocator/config.h"
#include "analysis/finding_order.h"
#include "analysis/pool_findings.h"
#include "analysis/recording_patterns.h"
#include "analysis/snapshot_analysis.h"
#include "readers/bfc_dump/read.h"
#include "recording/allocator_history.h"

namespace gpumemprof {
namespace {

void move_to(int64_t offset_us, std::optional<int64_t>* time_us) {
  if (*time_us) **time_us += offset_us;
}

/// Single moments are told as wall-clock time; the clock of a recording is the machine's.
void tell_wall_clock(int64_t offset_us, SnapshotDevice* device) {
  move_to(offset_us, &device->peak_time_us);
  move_to(offset_us, &device->peak_allocated_time_us);
  move_to(offset_us, &device->peak_reserved_time_us);
  for (OomExplanation& oom : device->ooms) move_to(offset_us, &oom.time_us);
}

void replace(DeviceAnalysis&& by, const Device& device, const Tables& tables, Analysis* all) {
  for (DeviceAnalysis& known : all->devices) {
    if (tables.devices[known.device] != device) continue;
    by.device = known.device;
    auto told = std::make_shared<SnapshotDevice>(*by.snapshot);
    tell_wall_clock(tables.processes[device.process].realtime_offset_ns / 1000, told.get());
    by.snapshot = std::move(told);
    // Of the events alone; a snapshot's own analysis has none.
    by.step_levels = std::move(known.step_levels);
    by.live_moments = std::move(known.live_moments);
    by.turns = std::move(known.turns);
    known = std::move(by);
    return;
  }
}

/// A recording has the text of the settings alone; what it says stands beside it in a snapshot.
void fill_settings(AllocatorSnapshot* snapshot) {
  RecordedSettings& settings = snapshot->settings;
  const std::vector<Release> releases = releases_for_hint(snapshot->info.writer_version_hint);
  const AllocatorConfig config = recorded_config(settings, releases.back());
  if (config.max_split_size_bytes != kUnlimited) {
    settings.max_split_size_bytes = static_cast<int64_t>(config.max_split_size_bytes);
  }
  settings.garbage_collection_threshold = config.garbage_collection_threshold;
  settings.expandable_segments = config.expandable_segments;
  for (size_t i = 0; i < config.roundup_divisions.size(); ++i) {
    settings.roundup_power2_divisions.emplace_back(uint64_t{1} << i, config.roundup_divisions[i]);
  }
}

}  // namespace

Result<AllocatorSnapshot> recorded_snapshot(EventSource& source) {
  auto snapshot = read_allocator_history(source);
  if (snapshot) fill_settings(&*snapshot);
  return snapshot;
}

Status add_histories(const std::vector<AllocatorSnapshot>& histories, const Tables& tables,
                     const SnapshotAnalysisOptions& options, Analysis* all) {
  for (const AllocatorSnapshot& history : histories) {
    Result<Analysis> part = analyze_snapshot(history, options);
    if (!part) return std::unexpected(part.error());
    for (Finding& finding : part->findings) {
      const auto known = std::ranges::find(tables.devices, history.tables.devices[finding.device]);
      finding.device = static_cast<uint16_t>(known - tables.devices.begin());
      all->findings.push_back(std::move(finding));
    }
    for (DeviceAnalysis& device : part->devices) {
      const Device& memory = history.tables.devices[device.device];
      replace(std::move(device), memory, tables, all);
    }
  }
  sort_findings(&all->findings);
  return {};
}

Result<Analysis> analyze_whole(EventSource& source, const AnalysisOptions& options) {
  AllocatorHistory history(source, {.stands_alone = false});
  HistoryTee tee(&source, &history);
  AnalysisOptions with_leaks = options;
  with_leaks.find_leaks = true;
  auto analysis = analyze_source(tee, with_leaks);
  if (!analysis) return analysis;
  if (auto done = add_histories(history.finish(), source.tables(), {}, &*analysis); !done) {
    return std::unexpected(done.error());
  }
  if (auto pool = pool_of(source)) add_pool(std::move(pool), &*analysis);
  if (source.info().can.times) {
    add_patterns(source.tables(), options.capacity_bytes, &*analysis);
  } else {
    analysis->score.reason = "the events have no times";
  }
  return analysis;
}

}  // namespace gpumemprof

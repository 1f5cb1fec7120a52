#include "analysis/replay/snapshot_device.h"

#include <algorithm>
#include <utility>

#include "allocator/release_cause.h"
#include "analysis/replay/settings_study.h"
#include "analysis/replay/settings_text.h"
#include "analysis/replay/snapshot_troubles.h"
#include "analysis/statistics/worth.h"
#include "trace/trace_source.h"

namespace gpumemprof {
namespace {

/// The first event after which most is reserved, by the recorded segments alone, and then the
/// allocation that asked for it; kBeforeFirstEvent where no event raises it.
uint64_t most_reserved_event(const AllocatorTrace& trace) {
  constexpr uint64_t kStart = uint64_t{1} << 62;  // what was reserved before does not matter
  uint64_t now = kStart, most = kStart, event = kBeforeFirstEvent;
  const AllocatorEvents& events = trace.events;
  for (size_t i = events.next_other(0); i < events.size(); i = events.next_other(i + 1)) {
    const AllocatorEvent one = events[i];
    if (one.action == Action::kSegmentAlloc || one.action == Action::kSegmentMap)
      now += one.size_bytes;
    else if (one.action == Action::kSegmentFree || one.action == Action::kSegmentUnmap)
      now -= one.size_bytes;
    if (now > most) most = now, event = i;
  }
  const bool is_asked_next = event != kBeforeFirstEvent && event + 1 < events.size() &&
                             events[event + 1].action == Action::kAlloc;
  return is_asked_next ? event + 1 : event;
}

/// What is fed by a replay.
struct Watched {
  CacheGrowth growth;
  StrandedCache stranded;
  Watched(const AllocatorTrace& trace, const TraceStart& start)
      : growth(trace), stranded(trace, start) {}
};

/// Looks on while a trace is replayed: two timelines, and the allocator at the moments that matter.
class Watcher {
 public:
  Watcher(const AllocatorTrace& trace, std::optional<uint64_t> peak_event,
          const std::vector<uint64_t>& ooms, const SnapshotAnalysisOptions& options,
          SnapshotDevice* device, Watched* watched)
      : trace_(trace),
        peak_event_(peak_event.value_or(kBeforeFirstEvent)),
        most_reserved_event_(most_reserved_event(trace)),
        ooms_(ooms),
        options_(options),
        device_(device),
        watched_(watched) {}

  bool see(uint64_t event, const Simulator& simulator) {
    if (event == peak_event_)
      device_->at_peak = look_at(simulator, event);
    else if (event == most_reserved_event_)
      device_->at_most_reserved = look_at(simulator, event);
    const AllocatorStatistics& now = simulator.statistics();
    if (event == kBeforeFirstEvent) {
      begin(now);
      return true;
    }
    watched_->growth.see(event, simulator);
    watched_->stranded.see(event, simulator);
    // Only what changes: the rest of a bucket is the level that it has.
    const uint64_t allocated = now.allocated.current, reserved = now.reserved.current;
    if (allocated != allocated_ || reserved != reserved_) {
      const uint64_t time =
          TraceSource::time_of(trace_, event, trace_.has_times ? trace_.events[event].time_us : 0);
      if (allocated != allocated_) device_->allocated.add(time, allocated);
      if (reserved != reserved_) device_->reserved.add(time, reserved);
      if (event >= device_->cached_before_events)
        device_->most_reserved_after_cache_bytes =
            std::max(device_->most_reserved_after_cache_bytes, reserved);
      allocated_ = allocated, reserved_ = reserved;
    }
    if (now.fragmented_bytes() > device_->most_fragmented_bytes) {
      device_->most_fragmented_bytes = now.fragmented_bytes();
      device_->most_fragmented_event = event;
    }
    if (next_oom_ < ooms_.size() && ooms_[next_oom_] == event) {
      OomExplanation oom = explain_oom(trace_, event, simulator);
      oom.number = ++next_oom_ == ooms_.size() ? device_->oom_count - 1 : next_oom_ - 1;
      device_->ooms.push_back(std::move(oom));
    }
    constexpr uint64_t kEventsPerReport = 1 << 16;
    if (event % kEventsPerReport == 0 && options_.on_progress) {
      options_.on_progress(static_cast<double>(event) / static_cast<double>(trace_.events.size()));
    }
    return true;
  }

  /// After the last event: the timelines end with it.
  void finish() {
    if (trace_.events.empty()) return;
    const size_t last = trace_.events.size() - 1;
    const uint64_t end = TraceSource::time_of(trace_, last, trace_.events[last].time_us);
    device_->allocated.finish(end);
    device_->reserved.finish(end);
  }

 private:
  void begin(const AllocatorStatistics& now) {
    watched_->growth.begin(now);
    watched_->stranded.begin(now);
    device_->most_fragmented_bytes = now.fragmented_bytes();
    device_->most_fragmented_event.reset();
    allocated_ = now.allocated.current, reserved_ = now.reserved.current;
    if (trace_.events.empty()) return;
    const uint64_t start = TraceSource::time_of(trace_, 0, trace_.events[0].time_us);
    device_->allocated = Timeline(start, options_.timeline_buckets, now.allocated.current);
    device_->reserved = Timeline(start, options_.timeline_buckets, now.reserved.current);
  }

  const AllocatorTrace& trace_;
  uint64_t peak_event_, most_reserved_event_;
  const std::vector<uint64_t>& ooms_;
  const SnapshotAnalysisOptions& options_;
  SnapshotDevice* device_;
  Watched* watched_;
  size_t next_oom_ = 0;
  uint64_t allocated_ = 0, reserved_ = 0;  // after the event before
};

std::optional<int64_t> time_of_event(const AllocatorTrace& trace, std::optional<uint64_t> event) {
  if (!event || !trace.has_times || *event >= trace.events.size()) return std::nullopt;
  return trace.events[*event].time_us;
}

std::string difference(const char* what, uint64_t replayed, uint64_t listed) {
  return std::string("the replay ends with ") + std::to_string(replayed) + " bytes " + what +
         ", the file's segments have " + std::to_string(listed);
}

void check_consistency(SnapshotDevice* device) {
  const ReplayResult& replay = device->replay;
  std::string& why = device->contradiction;
  if (replay.gave_up) {
    why = "the replay takes more steps than any real trace, and was stopped";
  } else if (replay.impossible_events != 0) {
    why = std::to_string(replay.impossible_events) +
          " events are impossible: frees of unknown blocks, or allocations over live ones";
  } else if (replay.end.allocated_bytes != device->end.allocated_bytes) {
    why = difference("allocated", replay.end.allocated_bytes, device->end.allocated_bytes);
  } else if (replay.end.reserved_bytes != device->end.reserved_bytes) {
    why = difference("reserved", replay.end.reserved_bytes, device->end.reserved_bytes);
  }
  device->is_consistent = why.empty();
}

/// Causes of a cache larger than needed, for a device with a consistent replay.
void name_growth(const CacheGrowth& growth, SnapshotDevice* device) {
  const uint64_t reserved = device->replay.peak_reserved.bytes;
  device->idle_cache = growth.idle_cache(reserved);
  device->variable_shapes = growth.variable_shapes(reserved);
}

/// After the troubles, which may have what is fragmented. Where a request was refused, its trials
/// say more.
bool is_fragmented(const SnapshotDevice& device) {
  if (!device.at_peak) return false;
  const PinnedPieces pinned = most_pinned(device);
  return device.has_history && device.ooms.empty() &&
         is_worth(pinned.bytes, pinned.moment->figures.reserved_bytes);
}

void try_expandable(const AllocatorTrace& trace, const TraceStart& start,
                    const RecordedSettings& settings, SnapshotDevice* device) {
  const ReplayResult& replay = device->replay;
  AllocatorConfig config = recorded_config(settings, replay.release);
  if (lack_of(replay) != ReplayLack::kNothing) return;
  if (config.expandable_segments || !(device->variable_shapes || is_fragmented(*device))) return;
  // PyTorch through 2.4 stops itself where max_split_size_mb is set, too.
  if (!parse_settings(expandable_settings(*device), replay.release)) return;
  if (!device->ooms.empty()) take_room(device->ooms.front().room, trace.device_bytes, &config);
  const WhatIfResult as_it_was = what_if(trace, start, config, replay.release);
  config.expandable_segments = true;
  const WhatIfResult expandable = what_if(trace, start, config, replay.release);
  if (as_it_was.gave_up_at || expandable.gave_up_at || expandable.num_ooms != 0) return;
  device->expandable = {as_it_was.peak_reserved_bytes, expandable.peak_reserved_bytes};
}

void find_troubles(const AllocatorTrace& trace, const TraceStart& start,
                   const RecordedSettings& settings, const StrandedCache& stranded,
                   const Tables& tables, SnapshotDevice* device) {
  const auto add = [&](std::optional<Finding> found) {
    if (found) device->troubles.push_back(*std::move(found));
  };
  add(find_graph_pool_slack(trace, start, settings, *device));
  if (!device->is_consistent || !device->has_history) return;
  add(stranded.find(settings, *device));
  add(find_record_stream_pending(trace, start, settings, *device));
  add(find_settings_conflict(trace, start, settings, *device));
  add(find_segment_churn(trace, tables, *device));
}

void find_pinned_troubles(const AllocatorTrace& trace, const TraceStart& start,
                          SnapshotDevice* device) {
  const PinnedUse use = pinned_use(trace, start);
  for (std::optional<Finding> found : {find_pinned_rounding(use), find_pinned_cache_growth(use)})
    if (found) device->troubles.push_back(*std::move(found));
}

/// With garbage collection a release within an allocation need not be a retry.
Retries find_retries(const AllocatorTrace& trace, const RecordedSettings& settings,
                     const Tables& tables) {
  Retries out;
  if (settings.garbage_collection_threshold > 0 ||
      settings.conf.contains("garbage_collection_threshold"))
    return out;
  const AllocatorEvents& events = trace.events;
  for (size_t i = events.next_other(0); i < events.size(); i = events.next_other(i + 1)) {
    if (!gives_back(events[i].action)) continue;
    const bool is_retry = release_cause(trace, i) == ReleaseCause::kRetry &&
                          !is_of_empty_cache(tables, events[i].stack);
    if (is_retry && out.count++ == 0) out.first_event = i;
    for (; i + 1 < events.size() && gives_back(events[i].action); ++i)
      out.released_bytes += is_retry ? events[i].size_bytes : 0;
  }
  return out;
}

/// Whether something was allocated after the last refusal: the program went on.
bool went_on_after_refusals(const AllocatorEvents& events) {
  for (size_t i = events.size(); i-- > 0;) {
    const Action action = events[i].action;
    if (action == Action::kAlloc || action == Action::kOom) return action == Action::kAlloc;
  }
  return false;
}

/// What is released before any other event held no block: it was cached when the trace began.
void find_cached_before(const AllocatorSnapshot& snapshot, const AllocatorTrace& trace,
                        SnapshotDevice* device) {
  if (trace.events.empty() || !is_of_empty_cache(snapshot.tables, trace.events[0].stack)) return;
  device->cached_before_stack = trace.events[0].stack;
  for (size_t i = 0; i < trace.events.size(); ++i) {
    const AllocatorEvent event = trace.events[i];
    const bool releases =
        event.action == Action::kSegmentFree || event.action == Action::kSegmentUnmap;
    if (!releases || event.stack != device->cached_before_stack) return;
    device->cached_before_bytes += event.size_bytes, ++device->cached_before_events;
  }
}

}  // namespace

bool is_of_empty_cache(const Tables& tables, uint32_t stack) {
  return tables.stacks.find_node(stack, [&](const Frame& frame) {
    const std::string_view function = tables.strings.get(frame.function);
    return function.ends_with("empty_cache") || function.contains("emptyCache");
  }) != 0;
}

const Finding* trouble(const SnapshotDevice& device, FindingKind kind) {
  const auto found = std::ranges::find(device.troubles, kind, &Finding::kind);
  return found == device.troubles.end() ? nullptr : &*found;
}

PinnedPieces most_pinned(const SnapshotDevice& device) {
  const bool have_pools_their_own = trouble(device, FindingKind::kGraphPoolSlack) != nullptr;
  const auto bytes = [&](const AllocatorMoment& moment) {
    return less_or_none(moment.pinned_bytes,
                        have_pools_their_own ? pool_slack(moment).pinned_bytes : 0);
  };
  const PinnedPieces peak{.moment = &*device.at_peak, .bytes = bytes(*device.at_peak)};
  if (!device.at_most_reserved) return peak;
  const AllocatorMoment& other = *device.at_most_reserved;
  if (bytes(other) <= peak.bytes) return peak;
  return {.moment = &other, .bytes = bytes(other), .is_at_peak = false};
}

std::string expandable_settings(const SnapshotDevice& device) {
  return merge_settings(device.recorded_settings, "expandable_segments:True");
}

SegmentSums sum_segments(const AllocatorTrace& trace) {
  SegmentSums sums;
  for (const AllocatorSegment& segment : trace.segments) {
    ++sums.segments;
    sums.reserved_bytes += segment.size_bytes;
    sums.allocated_bytes += segment.allocated_bytes;
    sums.active_bytes += segment.active_bytes;
    if (segment.pool != 0) sums.private_pool_bytes += segment.size_bytes;
    for (const AllocatorBlock& block : segment.blocks) {
      if (block.state == BlockState::kFree) continue;
      sums.requested_bytes += block.requested_bytes;
      ++sums.blocks;
    }
  }
  return sums;
}

SnapshotDevice describe_device(const AllocatorSnapshot& snapshot, size_t index,
                               std::optional<uint64_t> peak_event) {
  const AllocatorTrace& trace = snapshot.traces[index];
  SnapshotDevice device;
  device.is_recorded = snapshot.info.kind == SourceKind::kRecording;
  device.contradiction = "it was not replayed";
  device.end = sum_segments(trace);
  device.has_history = trace.has_history && !trace.events.empty();
  device.has_times = trace.has_times;
  device.overflowed = trace.overflowed;
  device.recorded_settings = recorded_text(snapshot.settings);
  device.settings_known = snapshot.settings.known;
  device.peak_event = peak_event;
  device.peak_time_us = time_of_event(trace, peak_event);
  find_cached_before(snapshot, trace, &device);
  if (trace.device >= 0) device.retries = find_retries(trace, snapshot.settings, snapshot.tables);
  return device;
}

SnapshotDevice replay_device(const AllocatorSnapshot& snapshot, size_t index,
                             const TraceStart& start, std::optional<uint64_t> peak_event,
                             const SnapshotAnalysisOptions& options) {
  const AllocatorTrace& trace = snapshot.traces[index];
  SnapshotDevice device = describe_device(snapshot, index, peak_event);
  if (trace.device < 0) {
    device.contradiction = "pinned host memory has an allocator of its own, which is not replayed";
    find_pinned_troubles(trace, start, &device);
    return device;
  }
  device.is_replayed = true;
  device.contradiction.clear();
  device.oom_count = trace.events.count(Action::kOom);
  std::vector<uint64_t> ooms;  // the last in the last place
  uint64_t found_ooms = 0;
  for (size_t i = trace.events.next_other(0);
       i < trace.events.size() && found_ooms < device.oom_count;
       i = trace.events.next_other(i + 1)) {
    if (trace.events[i].action != Action::kOom) continue;
    if (++found_ooms <= kMostOoms)
      ooms.push_back(i);
    else
      ooms.back() = i;
  }
  SnapshotDevice tried, best;
  Watched trying(trace, start), watched(trace, start);
  const auto replay = [&](const Release& release) {
    tried = device;
    trying = Watched(trace, start);
    Watcher watcher(trace, peak_event, ooms, options, &tried, &trying);
    ReplayResult result = replay_recorded(
        trace, start, snapshot.settings, release,
        [&](uint64_t event, const Simulator& simulator) { return watcher.see(event, simulator); });
    watcher.finish();
    return result;
  };
  ReplayResult found = search_release(snapshot.info.writer_version_hint, replay, [&] {
    best = std::move(tried);
    watched = std::move(trying);
  });
  device = std::move(best);
  device.replay = std::move(found);
  device.peak_allocated_time_us = time_of_event(trace, device.replay.peak_allocated.event);
  device.peak_reserved_time_us = time_of_event(trace, device.replay.peak_reserved.event);
  check_consistency(&device);
  const auto& most = device.at_most_reserved;  // by the segments, which a replay may deny
  if (most && most->figures.reserved_bytes != device.replay.peak_reserved.bytes)
    device.at_most_reserved.reset();
  if (device.is_consistent) name_growth(watched.growth, &device);
  find_troubles(trace, start, snapshot.settings, watched.stranded, snapshot.tables, &device);
  if (device.is_consistent) try_expandable(trace, start, snapshot.settings, &device);
  const bool went_on = !device.ooms.empty() && went_on_after_refusals(trace.events);
  for (OomExplanation& oom : device.ooms) {
    oom.went_on = went_on;
    if (!device.is_consistent) {
      oom.not_reproduced = "the trace contradicts itself";
      continue;
    }
    try_settings(trace, start, snapshot.settings, device.replay.release, options.threads, &oom);
  }
  return device;
}

}  // namespace gpumemprof

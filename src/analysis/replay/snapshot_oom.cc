#include "analysis/replay/snapshot_oom.h"

#include <algorithm>

#include "analysis/replay/settings_text.h"
#include "base/parallel_for.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kDriverUnitBytes = 2 * kMiB;  // segments of large blocks are multiples of it
constexpr uint64_t kLeastLargeSegment = 10 * kMiB;
constexpr uint64_t kLargestSmall = OomExplanation::kLargestSmallBytes;

/// The largest request of small blocks that would have been served: their pool is one of its own.
uint64_t largest_small_fit(const OomExplanation& oom, const Simulator::Request& request) {
  if (oom.room.least_bytes - oom.moment.figures.reserved_bytes >= kDriverUnitBytes)
    return kLargestSmall;
  uint64_t largest = 0;
  for (const FreeListSummary& list : oom.moment.free.lists) {
    if (!list.is_large && list.pool == request.pool && list.stream == request.stream)
      largest = std::max(largest, list.largest_bytes);
  }
  return std::min(largest, kLargestSmall);
}

/// The largest request that the device and the cache would have served, where segments have fixed
/// addresses: a free block that may be used, or a new segment of what was left.
std::optional<uint64_t> largest_fit(const OomExplanation& oom, const Simulator& simulator,
                                    const Simulator::Request& request) {
  if (simulator.config().expandable_segments || oom.room.basis == RoomBasis::kRefusals)
    return std::nullopt;
  if (oom.asked_bytes <= kLargestSmall) return largest_small_fit(oom, request);
  const uint64_t left = oom.room.least_bytes - oom.moment.figures.reserved_bytes;
  const uint64_t whole = left / kDriverUnitBytes * kDriverUnitBytes;
  const uint64_t large = std::max(oom.obstacle.largest_usable_bytes,
                                  whole >= kLeastLargeSegment ? whole : 0);
  return large > kLargestSmall ? large : largest_small_fit(oom, request);
}

bool fits(const WhatIfResult& result) {
  return !result.oom_before_first_event && !result.first_oom_event_index && !result.gave_up_at;
}

std::optional<OomTrial> try_one(const AllocatorTrace& trace, const TraceStart& start,
                                const std::string& settings, const Release& release,
                                const OomExplanation& oom) {
  OomTrial trial{.settings = settings};
  Result<AllocatorConfig> config = parse_settings(settings, release);
  if (!config) return std::nullopt;  // candidates are parsed before they are offered
  take_room(oom.room, trace.device_bytes, &*config);
  const WhatIfResult result = what_if_until(trace, start, *config, release, oom.event);
  if (result.gave_up_at) return std::nullopt;
  trial.fits = fits(result);
  trial.fails_at_event = result.first_oom_event_index;
  trial.peak_reserved_bytes = result.peak_reserved_bytes;
  return trial;
}

/// The least multiple of the driver's unit, beyond the room, with which nothing fails.
std::optional<uint64_t> find_more_bytes(const AllocatorTrace& trace, const TraceStart& start,
                                        const AllocatorConfig& recorded, const Release& release,
                                        const OomExplanation& oom) {
  bool gave_up = false;
  const auto does = [&](uint64_t units) {
    AllocatorConfig config = recorded;
    take_room(oom.room, trace.device_bytes, &config);
    *config.capacity_bytes += units * kDriverUnitBytes;
    const WhatIfResult result = what_if_until(trace, start, config, release, oom.event);
    gave_up |= result.gave_up_at.has_value();
    return fits(result);
  };
  uint64_t low = 0;
  uint64_t high = oom.asked_bytes / kDriverUnitBytes + 16;
  if (!does(high)) return std::nullopt;
  while (high - low > 1) {
    const uint64_t middle = low + (high - low) / 2;
    (does(middle) ? high : low) = middle;
  }
  if (gave_up) return std::nullopt;
  return high * kDriverUnitBytes;
}

std::string name_of_cache(const SegmentView& segment, const Simulator::Request& request,
                          const AllocatorTrace& trace) {
  if (segment.pool != request.pool) {
    if (segment.pool == 0) return "the default pool";
    const auto [first, second] = trace.pools[segment.pool];
    return "private pool (" + std::to_string(first) + ',' + std::to_string(second) + ')';
  }
  if (segment.stream != request.stream)
    return "the cache of stream " + std::to_string(trace.streams[segment.stream]);
  return segment.is_large ? "the pool of large blocks" : "the pool of small blocks";
}

OtherCache other_cache(const OomExplanation& oom, const Simulator::Request& request,
                       const AllocatorTrace& trace) {
  const SegmentView& segment = *oom.obstacle.elsewhere;
  return {.place = name_of_cache(segment, request, trace),
          .piece_bytes = segment.largest_free_bytes,
          .stream = trace.streams[segment.stream],
          .pool = trace.pools[segment.pool],
          .is_private = segment.pool != 0 && segment.pool != request.pool,
          .is_of_stream = segment.pool == request.pool && segment.stream != request.stream,
          .segment = *std::ranges::find(oom.moment.segments, segment.address,
                                        &SegmentPicture::address)};
}

}  // namespace

const char* oom_cause_name(RefusalCause cause) {
  switch (cause) {
    case RefusalCause::kLimit:
      return "limit";
    case RefusalCause::kFragmentation:
      return "fragmentation";
    case RefusalCause::kOtherCache:
      return "other_cache";
    case RefusalCause::kWantOfMemory:
      break;
  }
  return "want_of_memory";
}

std::string OtherCache::text() const {
  return format_bytes(piece_bytes) + " were free in one piece, but in " + place;
}

std::string OomExplanation::left_text() const {
  const uint64_t reserved = moment.figures.reserved_bytes;
  std::string text = format_bytes(room.least_bytes - reserved);
  if (const std::string most = format_bytes(room.most_bytes - reserved); most != text)
    text += " to " + most;
  return text;
}

OomExplanation explain_oom(const AllocatorTrace& trace, uint64_t index,
                           const Simulator& simulator) {
  const AllocatorEvent event = trace.events[index];
  OomExplanation oom;
  oom.event = index;
  if (trace.has_times) oom.time_us = event.time_us;
  oom.stack = event.stack;
  oom.asked_bytes = event.size_bytes;
  oom.device_free_bytes = event.address;
  oom.moment = look_at(simulator, index);
  const Simulator::Request request{.requested_bytes = event.size_bytes,
                                   .stream = event.stream,
                                   .pool = event.pool,
                                   .stack = event.stack};
  oom.obstacle = obstacle(simulator, request);
  if (trace.has_pools || trace.pools.size() == 1)
    oom.fitting_bytes = fitting_bytes(simulator, request);
  const MemoryFigures& figures = oom.moment.figures;
  oom.room = room_at_refusal(trace, index, simulator);
  oom.free_inside_bytes = figures.reserved_bytes - figures.active_bytes;
  const uint64_t seen =
      figures.reserved_bytes + std::min(event.address, kUnlimited - figures.reserved_bytes);
  if (trace.device_bytes >= seen && trace.device_bytes != 0)
    oom.held_by_others_bytes = trace.device_bytes - seen;
  const uint64_t all_free = oom.room.bytes - figures.active_bytes;
  const bool had_device =
      oom.device_free_bytes >= new_memory_needed(oom.asked_bytes, simulator.config());
  if (oom.room.basis == RoomBasis::kDevice && had_device) {
    oom.cause = RefusalCause::kLimit;  // one of which nothing is known
  } else if (oom.asked_bytes <= all_free) {
    oom.cause = RefusalCause::kFragmentation;
    if (oom.obstacle.elsewhere && oom.fitting_bytes == 0) {
      oom.cause = RefusalCause::kOtherCache;
      oom.other_cache = other_cache(oom, request, trace);
    }
  } else {
    oom.cause = had_device ? RefusalCause::kLimit : RefusalCause::kWantOfMemory;
    if (oom.room.basis != RoomBasis::kRefusals) oom.missing_bytes = oom.asked_bytes - all_free;
  }
  oom.largest_fit_bytes = largest_fit(oom, simulator, request);
  return oom;
}

void try_settings(const AllocatorTrace& trace, const TraceStart& start,
                  const RecordedSettings& settings, const Release& release,
                  unsigned threads, OomExplanation* oom) {
  AllocatorConfig recorded = recorded_config(settings, release);
  take_room(oom->room, trace.device_bytes, &recorded);
  const WhatIfResult again = what_if_until(trace, start, recorded, release, oom->event);
  oom->is_reproduced = again.first_oom_event_index == oom->event;
  if (again.gave_up_at) {
    oom->not_reproduced = "the simulation takes too many steps";
  } else if (again.oom_before_first_event) {
    oom->not_reproduced = "the blocks that were live before the trace do not fit in the simulation";
  } else if (again.first_oom_event_index && !oom->is_reproduced) {
    oom->not_reproduced = "the simulation runs out of memory earlier, at event " +
                          std::to_string(*again.first_oom_event_index + 1);
  } else if (!again.first_oom_event_index) {
    oom->not_reproduced =
        "the simulation does not run out of memory there under the recorded settings";
  }
  if (!oom->is_reproduced) return;
  const std::vector<std::string> candidates =
      candidate_settings(trace, settings, release,
                         {.has_capacity = true, .has_limit = oom->room.is_own_limit()});
  std::vector<std::optional<OomTrial>> trials(candidates.size());
  // One more piece of work than candidates: the search for the missing bytes, which takes longest.
  parallel_for(candidates.size() + 1, threads, [&](size_t i) {
    if (i == 0) {
      if (oom->room.basis == RoomBasis::kRefusals) return;  // more than what is not known
      oom->more_bytes_needed = find_more_bytes(trace, start, recorded, release, *oom);
    } else {
      trials[i - 1] = try_one(trace, start, candidates[i - 1], release, *oom);
    }
  });
  for (std::optional<OomTrial>& trial : trials) {
    if (trial) oom->trials.push_back(*std::move(trial));
  }
}

const OomTrial* best_trial(const OomExplanation& oom) {
  const auto first = std::ranges::find(oom.trials, true, &OomTrial::fits);
  return first == oom.trials.end() ? nullptr : &*first;
}

}  // namespace gpumemprof

#include "analysis/replay/snapshot_findings.h"

#include <algorithm>

#include "analysis/replay/settings_text.h"
#include "analysis/replay/snapshot_troubles.h"
#include "analysis/statistics/worth.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kSlackShare = 10;

std::string in_the_simulation(const ExpandableTrial& trial) {
  return ": in the simulation, on a device that is never full, the same requests reserve " +
         format_bytes(trial.peak_reserved_bytes) + " instead of " +
         format_bytes(trial.peak_reserved_bytes_as_it_was);
}

/// "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True".
std::string set_text(const SnapshotDevice& device, const std::string& settings) {
  const std::string variable = settings_variable(device.replay.release);
  return settings.empty() ? "unset " + variable : "set " + variable + '=' + settings;
}

void add_expandable(const SnapshotDevice& device, Finding* finding) {
  const auto& trial = device.expandable;
  if (!trial || !is_worth(trial->saved_bytes(), trial->peak_reserved_bytes_as_it_was)) return;
  finding->bytes = trial->saved_bytes();
  finding->evidence.push_back({"peak_reserved_bytes", trial->peak_reserved_bytes_as_it_was});
  finding->evidence.push_back({"expandable_peak_reserved_bytes", trial->peak_reserved_bytes});
  finding->fix = set_text(device, expandable_settings(device)) + in_the_simulation(*trial);
  finding->is_fix_simulated = true;
}

Finding oom_finding(const OomExplanation& oom, const SnapshotDevice& device) {
  const bool is_consistent = device.is_consistent;
  Finding finding{.kind = FindingKind::kOutOfMemory,
                  // How a recorded program ended it tells itself.
                  .severity = oom.went_on && !device.is_recorded ? Severity::kWarning
                                                                 : Severity::kCritical,
                  .bytes = oom.asked_bytes,
                  .stack = oom.stack};
  const bool is_limited = is_consistent && oom.room.is_own_limit();
  finding.title = format_bytes(oom.asked_bytes) + " were requested with " +
                  (is_limited ? oom.left_text() + " left below the process's own limit"
                              : format_bytes(oom.device_free_bytes) + " free on the device");
  finding.evidence = {{"event_index", oom.event},
                      {"asked_bytes", oom.asked_bytes},
                      {"device_free_bytes", oom.device_free_bytes}};
  if (!is_consistent) return finding;
  switch (oom.cause) {
    case RefusalCause::kFragmentation:
      finding.title += ": enough was free in total, but not in one piece";
      break;
    case RefusalCause::kOtherCache:
      finding.title += ": " + oom.other_cache->text();
      break;
    case RefusalCause::kWantOfMemory:
      finding.title += ": more than all free memory";
      break;
    case RefusalCause::kLimit:
      finding.title += is_limited ? ": more than all free memory below the limit"
                                  : ": the device had enough, but the process's own limit refused it";
  }
  finding.evidence.insert(finding.evidence.end(),
                          {{"reserved_bytes", oom.moment.figures.reserved_bytes},
                           {"active_bytes", oom.moment.figures.active_bytes},
                           {"free_inside_bytes", oom.free_inside_bytes},
                           {"available_bytes", oom.room.bytes},
                           {"largest_free_block_bytes", oom.obstacle.largest_usable_bytes}});
  if (oom.fitting_bytes != 0) {
    finding.kind = FindingKind::kRefusedThoughItFits;
    finding.title = "a request of " + format_bytes(oom.asked_bytes) +
                    " was refused although the cache had a fitting free block of " +
                    format_bytes(oom.fitting_bytes) +
                    ": PyTorch waited for other streams and did not search its cache again";
    finding.evidence.push_back({"fitting_block_bytes", oom.fitting_bytes});
    finding.fix =
        "catch the error and retry, or do not let blocks of this stream wait for others "
        "(record_stream): in the replay the retry succeeds";
    finding.is_fix_simulated = true;
    return finding;
  }
  if (const OomTrial* trial = best_trial(oom)) {
    finding.fix = set_text(device, trial->settings) + ": in the simulation it fits, with " +
                  format_bytes(trial->peak_reserved_bytes) + " reserved at most";
    finding.is_fix_simulated = true;
    finding.evidence.push_back({"fitting_peak_reserved_bytes", trial->peak_reserved_bytes});
  }
  return finding;
}

std::string percent_of_addresses(const ReplayResult& replay) {
  return std::to_string(replay.matched) + " of " + std::to_string(replay.alloc_addresses);
}

void add_replay(const SnapshotDevice& device, std::vector<Finding>* findings) {
  const ReplayResult& replay = device.replay;
  if (!device.is_consistent) {
    findings->push_back(
        {.kind = FindingKind::kInconsistentTrace,
         .severity = Severity::kCritical,
         .title = "The events and the segments contradict each other: " + device.contradiction,
         .evidence = {{"impossible_events", replay.impossible_events},
                      {"matched", replay.matched},
                      {"alloc_addresses", replay.alloc_addresses}}});
  } else if (replay.first_mismatch_event) {
    findings->push_back({.kind = FindingKind::kReplayMismatch,
                         .severity = Severity::kWarning,
                         .title = "PyTorch's rules give " + percent_of_addresses(replay) +
                                  " allocations their recorded address; the first that differs is "
                                  "event " +
                                  std::to_string(*replay.first_mismatch_event + 1),
                         .evidence = {{"first_mismatch_event", *replay.first_mismatch_event},
                                      {"matched", replay.matched},
                                      {"alloc_addresses", replay.alloc_addresses}}});
  }
}

void add_pinned(const SnapshotDevice& device, std::vector<Finding>* findings) {
  const PinnedPieces pinned = most_pinned(device);
  const AllocatorMoment& moment = *pinned.moment;
  const uint64_t reserved = moment.figures.reserved_bytes;
  if (!is_worth(pinned.bytes, reserved)) return;
  Finding finding{
      .kind = FindingKind::kFragmentation,
      .severity = Severity::kWarning,
      .title = format_bytes(pinned.bytes) + " of " + format_bytes(reserved) +
               (pinned.is_at_peak ? " reserved at the peak" : " reserved at most") +
               " are free pieces in segments pinned by live blocks",
      .bytes = pinned.bytes,
      .evidence = {{"pinned_bytes", pinned.bytes},
                   {"pinned_segments", moment.pinned_segments},
                   {"largest_free_block_bytes", moment.free.largest_bytes},
                   {"reserved_bytes", reserved}}};
  if (!pinned.is_at_peak && moment.event)
    finding.evidence.push_back({"event_index", *moment.event});
  if (!moment.pinning.empty()) {
    finding.stack = moment.pinning.front().stack;
    finding.evidence.push_back(
        {"pinned_by_this_stack_alone_bytes", moment.pinning.front().alone_bytes});
  }
  add_expandable(device, &finding);
  findings->push_back(std::move(finding));
}

void add_peak(const SnapshotDevice& device, std::vector<Finding>* findings) {
  const AllocatorMoment& peak = *device.at_peak;
  const MemoryFigures& figures = peak.figures;
  // What lies in private pools has a finding of its own; if varying shapes are the cause, theirs
  // covers it.
  const bool is_of_settings = trouble(device, FindingKind::kSettingsConflict) != nullptr;
  const PoolSlack in_pools =
      trouble(device, FindingKind::kGraphPoolSlack) ? pool_slack(peak) : PoolSlack{};
  if (!device.variable_shapes && !is_of_settings) add_pinned(device, findings);
  const bool is_told =
      is_of_settings || trouble(device, FindingKind::kStrandedStreamCache) != nullptr ||
      trouble(device, FindingKind::kCacheSlack) != nullptr ||
      (device.idle_cache && device.idle_cache->first_event <= device.peak_event.value_or(0));
  const uint64_t releasable = less_or_none(figures.releasable_bytes,
                                           in_pools.free_bytes - in_pools.pinned_bytes);
  if (!is_told && is_worth(releasable, figures.reserved_bytes, kSlackShare)) {
    findings->push_back({.kind = FindingKind::kCacheSlack,
                         .severity = Severity::kInfo,
                         .title = format_bytes(releasable) + " of " +
                                  format_bytes(figures.reserved_bytes) +
                                  " reserved at the peak are wholly free segments: "
                                  "torch.cuda.empty_cache() would release them",
                         .bytes = releasable,
                         .evidence = {{"releasable_bytes", releasable},
                                      {"reserved_bytes", figures.reserved_bytes}}});
  }
  const uint64_t rounding =
      figures.active_bytes - std::min(figures.requested_bytes, figures.active_bytes);
  if (is_worth(rounding, figures.active_bytes)) {
    findings->push_back(
        {.kind = FindingKind::kRounding,
         .severity = Severity::kInfo,
         .title = "rounding adds " + format_bytes(rounding) + " to the live blocks at the peak" +
                  (device.recorded_settings.contains("roundup_power2_divisions")
                       ? ", with roundup_power2_divisions set"
                       : ""),
         .bytes = rounding,
         .evidence = {{"requested_bytes", figures.requested_bytes},
                      {"active_bytes", figures.active_bytes}}});
  }
}

void add_variable_shapes(const SnapshotDevice& device, std::vector<Finding>* findings) {
  const VariableShapes& shapes = *device.variable_shapes;
  const auto& trial = device.expandable;
  const bool helps = trial && trial->saved_bytes() != 0;
  Finding finding{.kind = FindingKind::kFragmentation,
                  .severity = Severity::kWarning,
                  .name = "variable_shapes",
                  .title = "the allocator added " + format_bytes(shapes.forced_bytes) +
                           " of segments in the second half of the trace for new sizes, "
                           "although as much was free in pieces of other sizes",
                  .bytes = helps ? trial->saved_bytes() : shapes.forced_bytes,
                  .evidence = {{"forced_bytes", shapes.forced_bytes},
                               {"forced_segments", shapes.forced_events},
                               {"distinct_sizes", shapes.distinct_sizes},
                               {"peak_reserved_bytes",
                                trial ? trial->peak_reserved_bytes_as_it_was
                                      : device.replay.peak_reserved.bytes}},
                  .stack = shapes.stack};
  finding.fix = "pad varying sizes to a few fixed ones";
  if (trial)
    finding.evidence.push_back({"expandable_peak_reserved_bytes", trial->peak_reserved_bytes});
  finding.is_fix_simulated = helps;
  if (helps) {
    finding.fix +=
        ", or " + set_text(device, expandable_settings(device)) + in_the_simulation(*trial);
  }
  findings->push_back(std::move(finding));
}

void add_idle_cache(const SnapshotDevice& device, std::vector<Finding>* findings) {
  const IdleCache& cache = *device.idle_cache;
  findings->push_back(
      {.kind = FindingKind::kCacheSlack,
       .severity = Severity::kWarning,
       .name = "cache_not_returned",
       .title = format_bytes(cache.bytes) + " in wholly free segments stayed reserved from event " +
                std::to_string(cache.first_event + 1) + " to the end; none of the " +
                std::to_string(cache.alloc_events) + " later allocations needed them",
       .bytes = cache.bytes,
       .evidence = {{"idle_bytes", cache.bytes},
                    {"first_event", cache.first_event},
                    {"alloc_events", cache.alloc_events},
                    {"allocated_bytes", cache.allocated_bytes},
                    {"peak_reserved_bytes", device.replay.peak_reserved.bytes}},
       .fix = "if others use the device, call torch.cuda.empty_cache() once after the phase that "
              "needed them"});
}

}  // namespace

void add_snapshot_findings(const SnapshotDevice& device, uint16_t index,
                           std::vector<Finding>* findings) {
  const size_t first = findings->size();
  for (const OomExplanation& oom : device.ooms) {
    findings->push_back(oom_finding(oom, device));
  }
  if (device.is_replayed) add_replay(device, findings);
  if (device.is_consistent && device.at_peak) add_peak(device, findings);
  const bool is_told =  // the cache that they tell of is that of a trouble
      trouble(device, FindingKind::kStrandedStreamCache) || trouble(device, FindingKind::kSettingsConflict);
  if (device.variable_shapes && !trouble(device, FindingKind::kSettingsConflict)) {
    add_variable_shapes(device, findings);
  } else if (device.idle_cache && !is_told) {  // what shapes of before left behind is idle too
    add_idle_cache(device, findings);
  }
  for (const Finding& finding : device.troubles) findings->push_back(finding);
  for (size_t i = first; i < findings->size(); ++i) (*findings)[i].device = index;
}

}  // namespace gpumemprof

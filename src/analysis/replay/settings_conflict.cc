#include "analysis/replay/snapshot_troubles.h"

#include "allocator/config.h"
#include "analysis/statistics/worth.h"

namespace gpumemprof {
namespace {

struct SettingsTrial {
  const char* text;
  AllocatorConfig config;
  WhatIfResult result;
};

}  // namespace

std::optional<Finding> find_settings_conflict(const AllocatorTrace& trace, const TraceStart& start,
                                              const RecordedSettings& settings,
                                              const SnapshotDevice& device) {
  const Release& release = device.replay.release;
  AllocatorConfig recorded = recorded_config(settings, release);
  const uint64_t limit = recorded.max_split_size_bytes;
  if (!recorded.expandable_segments || limit == kUnlimited) return std::nullopt;
  if (!device.ooms.empty()) take_room(device.ooms.front().room, trace.device_bytes, &recorded);
  SettingsTrial both{"both", recorded, {}}, unsplit{"max_split_size_mb", recorded, {}},
      fixed{"expandable_segments:True", recorded, {}};
  unsplit.config.max_split_size_bytes = kUnlimited;
  fixed.config.expandable_segments = false;
  for (SettingsTrial* trial : {&both, &unsplit, &fixed}) {
    trial->result = what_if(trace, start, trial->config, release);
    if (trial->result.gave_up_at) return std::nullopt;
  }
  const auto is_better = [](const WhatIfResult& a, const WhatIfResult& b) {
    if (a.num_ooms != b.num_ooms) return a.num_ooms < b.num_ooms;
    return a.peak_reserved_bytes < b.peak_reserved_bytes;
  };
  const SettingsTrial& best = is_better(fixed.result, unsplit.result) ? fixed : unsplit;
  const uint64_t before = both.result.peak_reserved_bytes, after = best.result.peak_reserved_bytes;
  const bool is_less_refused = best.result.num_ooms < both.result.num_ooms;
  if (!is_less_refused && !is_worth(less_or_none(before, after), before)) return std::nullopt;
  const std::string peaks = format_bytes(before) + " at the peak, " + format_bytes(after) +
                            " without " + best.text;
  return Finding{
      .kind = FindingKind::kSettingsConflict,
      .severity = Severity::kWarning,
      .title = "expandable_segments:True and max_split_size_mb work against each other: " +
               (is_less_refused ? std::to_string(both.result.num_ooms) +
                                      " requests are refused with both, " +
                                      std::to_string(best.result.num_ooms) + " without " + best.text
                                : peaks),
      .bytes = less_or_none(before, after),
      .evidence = {{"max_split_size_bytes", limit},
                   {"peak_reserved_bytes", before},
                   {"without_max_split_peak_reserved_bytes", unsplit.result.peak_reserved_bytes},
                   {"without_expandable_peak_reserved_bytes", fixed.result.peak_reserved_bytes}},
      .fix = std::string("remove ") + best.text + " from PYTORCH_ALLOC_CONF",
      .is_fix_simulated = true};
}

}  // namespace gpumemprof

#include "analysis/replay/changed_trace.h"

#include "analysis/statistics/worth.h"

namespace gpumemprof {

uint64_t ChangeSimulated::saved_bytes() const {
  return is_known ? less_or_none(as_it_was.peak_reserved_bytes, changed.peak_reserved_bytes) : 0;
}

bool ChangeSimulated::avoids_all_refusals() const {
  return is_known && as_it_was.num_ooms != 0 && changed.num_ooms == 0;
}

ChangeSimulated simulate_change(const AllocatorTrace& trace, const TraceStart& start,
                                const AllocatorTrace& changed, const RecordedSettings& settings,
                                const SnapshotDevice& device) {
  const Release& release = device.replay.release;
  AllocatorConfig config = recorded_config(settings, release);
  if (!device.ooms.empty()) take_room(device.ooms.front().room, trace.device_bytes, &config);
  ChangeSimulated out;
  out.as_it_was = what_if(trace, start, config, release);
  out.changed = what_if(changed, config, release);
  const auto is_answer = [](const WhatIfResult& result) {
    return !result.gave_up_at && !result.oom_before_first_event;
  };
  out.is_known = is_answer(out.as_it_was) && is_answer(out.changed);
  return out;
}

}  // namespace gpumemprof

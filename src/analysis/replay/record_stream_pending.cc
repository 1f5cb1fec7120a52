#include "analysis/replay/snapshot_troubles.h"

#include <absl/container/flat_hash_map.h>

#include "analysis/replay/changed_trace.h"
#include "analysis/statistics/worth.h"

namespace gpumemprof {
namespace {

/// As if every block were free as soon as its owner lets go.
AllocatorTrace without_waiting(const AllocatorTrace& trace, const TraceStart& start) {
  std::vector<bool> is_requested(start.number_count);
  return changed_events(trace, [&](size_t i, AllocatorEvent* event) {
    const uint32_t number = start.numbers[i];
    if (number >= is_requested.size()) return true;
    if (event->action == Action::kAlloc) is_requested[number] = false;
    if (event->action == Action::kFreeCompleted) return !is_requested[number];
    if (event->action == Action::kFreeRequested) {
      is_requested[number] = true;
      event->action = Action::kFreeCompleted;
    }
    return true;
  });
}

struct Waiting {
  uint64_t bytes = 0, blocks = 0;
  uint32_t stack = 0;  // with most of it
};

Waiting waiting_at(const AllocatorMoment& moment) {
  Waiting out;
  absl::flat_hash_map<uint32_t, uint64_t> by_stack;
  uint64_t most = 0;
  for (const SegmentPicture& segment : moment.segments) {
    for (const BlockPicture& block : segment.blocks) {
      if (block.state != SimulatedBlock::State::kPendingFree) continue;
      out.bytes += block.size_bytes;
      ++out.blocks;
      const uint64_t of_stack = by_stack[block.stack] += block.size_bytes;
      if (of_stack <= most) continue;
      most = of_stack;
      out.stack = block.stack;
    }
  }
  return out;
}

}  // namespace

std::optional<Finding> find_record_stream_pending(const AllocatorTrace& trace,
                                                  const TraceStart& start,
                                                  const RecordedSettings& settings,
                                                  const SnapshotDevice& device) {
  const ReplayResult& replay = device.replay;
  const uint64_t with = replay.peak_active.bytes, without = replay.peak_allocated.bytes;
  const uint64_t more = less_or_none(with, without);
  const bool may_wait = start.facts.records_requests && start.facts.records_completions;
  if (!may_wait || !device.at_peak || !is_worth(more, with)) return std::nullopt;
  const Waiting waiting = waiting_at(*device.at_peak);
  Finding finding{
      .kind = FindingKind::kRecordStreamPending,
      .severity = Severity::kWarning,
      .title = "at the peak, " + format_bytes(waiting.bytes) +
               " in freed blocks still waited for another stream (record_stream); without them the "
               "peak would be " +
               format_bytes(without) + " instead of " + format_bytes(with),
      .bytes = more,
      .evidence = {{"pending_bytes", waiting.bytes},
                   {"pending_blocks", waiting.blocks},
                   {"peak_active_bytes", with},
                   {"peak_without_pending_bytes", without}},
      .stack = waiting.stack,
      .fix = "instead of record_stream(), keep a reference to the tensor until its stream has "
             "waited for the other stream (stream.wait_stream(other)), then drop it"};
  const ChangeSimulated change =
      simulate_change(trace, start, without_waiting(trace, start), settings, device);
  if (change.is_known) {
    finding.evidence.push_back({"peak_reserved_bytes", change.as_it_was.peak_reserved_bytes});
    finding.evidence.push_back(
        {"without_pending_peak_reserved_bytes", change.changed.peak_reserved_bytes});
  }
  finding.is_fix_simulated = change.saved_bytes() != 0 || change.avoids_all_refusals();
  if (change.avoids_all_refusals()) {
    finding.fix += ": in the simulation no request is refused";
  } else if (change.saved_bytes() != 0) {
    finding.fix += ": in the simulation " + format_bytes(change.changed.peak_reserved_bytes) +
                   " are reserved at most instead of " +
                   format_bytes(change.as_it_was.peak_reserved_bytes);
  }
  return finding;
}

}  // namespace gpumemprof

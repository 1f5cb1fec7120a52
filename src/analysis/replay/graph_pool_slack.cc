#include "analysis/replay/snapshot_troubles.h"

#include <absl/container/flat_hash_set.h>

#include "analysis/replay/changed_trace.h"
#include "analysis/statistics/worth.h"

namespace gpumemprof {
namespace {

/// Adds up segments, of either kind.
class SlackSum {
 public:
  void add(uint16_t pool, uint64_t bytes, uint64_t active_bytes, uint32_t stack) {
    sum_.reserved_bytes += bytes;
    if (pool == 0) return;
    pools_.insert(pool);
    sum_.pools = pools_.size();
    sum_.pools_bytes += bytes;
    const uint64_t free = less_or_none(bytes, active_bytes);
    sum_.free_bytes += free;
    if (active_bytes != 0) sum_.pinned_bytes += free;
    if (free <= most_) return;
    most_ = free;
    sum_.stack = stack;
  }
  const PoolSlack& sum() const { return sum_; }

 private:
  PoolSlack sum_;
  absl::flat_hash_set<uint16_t> pools_;
  uint64_t most_ = 0;
};

PoolSlack slack_at_end(const AllocatorTrace& trace) {
  SlackSum sum;
  for (const AllocatorSegment& segment : trace.segments)
    sum.add(segment.pool, segment.size_bytes, segment.active_bytes, segment.stack);
  return sum.sum();
}

AllocatorTrace in_one_pool(const AllocatorTrace& trace, const TraceStart& start) {
  AllocatorTrace out = changed_events(trace, [&](size_t, AllocatorEvent* event) {
    event->pool = start.facts.pool_of(trace, *event) == 0 ? 0 : 1;
    return true;
  });
  out.has_pools = true;
  for (AllocatorSegment& segment : out.segments) segment.pool = segment.pool == 0 ? 0 : 1;
  return out;
}

}  // namespace

PoolSlack pool_slack(const AllocatorMoment& moment) {
  SlackSum sum;
  for (const SegmentPicture& segment : moment.segments) {
    const uint32_t stack = segment.blocks.empty() ? 0 : segment.blocks.front().stack;
    sum.add(segment.pool, segment.size_bytes, segment.active_bytes, stack);
  }
  return sum.sum();
}

std::optional<Finding> find_graph_pool_slack(const AllocatorTrace& trace, const TraceStart& start,
                                             const RecordedSettings& settings,
                                             const SnapshotDevice& device) {
  const PoolSlack end = slack_at_end(trace);
  PoolSlack slack = end;
  if (device.is_consistent && device.at_peak) {
    const PoolSlack peak = pool_slack(*device.at_peak);
    if (peak.free_bytes > slack.free_bytes) slack = peak;
  }
  if (!is_worth(slack.free_bytes, slack.reserved_bytes)) return std::nullopt;
  const bool is_of_end = slack.free_bytes == end.free_bytes;
  Finding finding{
      .kind = FindingKind::kGraphPoolSlack,
      .severity = Severity::kInfo,
      .title = format_bytes(slack.free_bytes) + " of the " + format_bytes(slack.pools_bytes) +
               " in private pools (CUDA graphs, MemPools) are free at the " +
               (is_of_end ? "end" : "peak") + ", but only their own pools can use them",
      .bytes = slack.free_bytes,
      .evidence = {{"free_in_pools_bytes", slack.free_bytes},
                   {"pools_bytes", slack.pools_bytes},
                   {"pools", slack.pools},
                   {"reserved_bytes", slack.reserved_bytes}},
      .stack = slack.stack,
      .fix = "capture less in the graph, or reset the graph when it is no longer needed: each "
             "replay writes to these blocks"};
  if (slack.pools < 2 || !device.is_consistent || !device.has_history) return finding;
  const ChangeSimulated one =
      simulate_change(trace, start, in_one_pool(trace, start), settings, device);
  if (!is_worth(one.saved_bytes(), slack.reserved_bytes)) return finding;
  finding.severity = Severity::kWarning;
  finding.bytes = one.saved_bytes();
  finding.evidence.insert(finding.evidence.end(),
                          {{"peak_reserved_bytes", one.as_it_was.peak_reserved_bytes},
                           {"one_pool_peak_reserved_bytes", one.changed.peak_reserved_bytes}});
  finding.fix =
      "capture graphs that never run at the same time into one pool (torch.cuda.graph(graph, "
      "pool=first.pool())), the largest first: in the simulation one pool needs " +
      format_bytes(one.changed.peak_reserved_bytes) + " at the peak instead of " +
      format_bytes(one.as_it_was.peak_reserved_bytes);
  finding.is_fix_simulated = true;
  return finding;
}

}  // namespace gpumemprof

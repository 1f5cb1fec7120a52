#include "analysis/replay/snapshot_troubles.h"

#include <absl/container/flat_hash_map.h>

#include <string>

#include "analysis/statistics/worth.h"
#include "base/duration.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kTimesThePeak = 3;  // as much as is allocated beside a cache that is idle

struct Churn {
  uint64_t freed_count = 0, freed_bytes = 0;
  uint64_t by_empty_cache_count = 0, calls = 0;  ///< of empty_cache() that freed any
  uint64_t without_stack_count = 0;
  uint32_t stack = 0;  ///< of the first of these calls
};

Churn churn_of(const AllocatorTrace& trace, const Tables& tables) {
  Churn out;
  absl::flat_hash_map<uint32_t, bool> known;  // by stack
  size_t next_of_call = SIZE_MAX;  // one call frees its segments one after the other
  for (size_t i = trace.events.next_other(0); i < trace.events.size();
       i = trace.events.next_other(i + 1)) {
    const AllocatorEvent event = trace.events[i];
    if (event.action != Action::kSegmentFree) continue;
    ++out.freed_count;
    out.freed_bytes += event.size_bytes;
    out.without_stack_count += event.stack == 0;
    const auto [at, is_new] = known.try_emplace(event.stack);
    if (is_new) at->second = is_of_empty_cache(tables, event.stack);
    if (!at->second) continue;
    if (out.by_empty_cache_count++ == 0) out.stack = event.stack;
    out.calls += i != next_of_call;
    next_of_call = i + 1;
  }
  return out;
}

std::string segments_text(uint64_t count) {
  return std::to_string(count) + (count == 1 ? " segment" : " segments");
}

}  // namespace

std::optional<Finding> find_segment_churn(const AllocatorTrace& trace, const Tables& tables,
                                          const SnapshotDevice& device) {
  const uint64_t peak_bytes = device.replay.peak_reserved.bytes;
  if (trace.events.count(Action::kSegmentFree) == 0) return std::nullopt;
  const Churn churn = churn_of(trace, tables);
  if (churn.freed_bytes < kLeastWorthBytes || churn.freed_bytes / kTimesThePeak < peak_bytes)
    return std::nullopt;
  const uint64_t allocated = trace.events.count(Action::kSegmentAlloc);
  Finding finding{.kind = FindingKind::kCacheSlack,
                  .severity = Severity::kInfo,
                  .name = kSegmentChurn,
                  .title = segments_text(churn.freed_count) + " (" +
                           format_bytes(churn.freed_bytes) + ") were freed and " +
                           std::to_string(allocated) + " allocated",
                  .evidence = {{"segments_freed", churn.freed_count},
                               {"segments_allocated", allocated},
                               {"freed_bytes", churn.freed_bytes},
                               {"peak_reserved_bytes", peak_bytes}}};
  if (trace.has_times) {
    const int64_t first_us = trace.events[0].time_us;
    const int64_t last_us = trace.events[trace.events.size() - 1].time_us;
    const uint64_t span_us = last_us > first_us ? static_cast<uint64_t>(last_us - first_us) : 0;
    finding.title += " in " + format_seconds(static_cast<double>(span_us) * 1e-6);
    finding.evidence.emplace_back("duration_ns", span_us * 1000);
  }
  finding.title += "; each cudaFree waits for the GPU, and each segment is a cudaMalloc again";
  if (2 * churn.by_empty_cache_count >= churn.freed_count) {
    finding.title = "torch.cuda.empty_cache() gave memory back " + std::to_string(churn.calls) +
                    (churn.calls == 1 ? " time: " : " times: ") + finding.title;
    finding.evidence.emplace_back("empty_cache_calls", churn.calls);
    finding.stack = churn.stack;
    finding.fix = "unless others need the memory, do not call empty_cache() in the loop";
  } else if (churn.without_stack_count == churn.freed_count) {
    finding.title += "; no stack says what freed them";
    finding.fix = "if the program calls torch.cuda.empty_cache() in a loop, do not";
  }
  return finding;
}

}  // namespace gpumemprof

#include "analysis/replay/snapshot_troubles.h"

#include "analysis/statistics/worth.h"

namespace gpumemprof {

std::optional<Finding> find_pinned_cache_growth(const PinnedUse& use) {
  constexpr uint64_t kIdlePinnedShare = 4;
  const uint64_t idle = less_or_none(use.taken_bytes, use.peak_used_bytes);
  if (use.returned_bytes != 0 || !is_worth(idle, use.taken_bytes, kIdlePinnedShare) ||
      !is_worth(use.late_bytes, use.taken_bytes)) {
    return std::nullopt;
  }
  return Finding{
      .kind = FindingKind::kPinnedCacheGrowth,
      .severity = Severity::kWarning,
      .title = "PyTorch keeps " + format_bytes(use.taken_bytes) +
               " of pinned host memory, of which at most " + format_bytes(use.peak_used_bytes) +
               " were in use at a time; " + format_bytes(use.late_bytes) +
               " were added in the second half of the trace, and none was returned",
      .bytes = idle,
      .evidence = {{"taken_bytes", use.taken_bytes},
                   {"peak_used_bytes", use.peak_used_bytes},
                   {"late_bytes", use.late_bytes},
                   {"buffers", use.blocks},
                   {"distinct_sizes", use.distinct_sizes}},
      .stack = use.late_stack,
      .fix = "copy through one pinned buffer of the largest size, or set "
             "PYTORCH_ALLOC_CONF=pinned_max_cached_size_mb:1 (PyTorch 2.13 or newer) to give larger "
             "ones back at once"};
}

}  // namespace gpumemprof

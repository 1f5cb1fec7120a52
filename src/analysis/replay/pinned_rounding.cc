#include "analysis/replay/snapshot_troubles.h"

#include "analysis/statistics/worth.h"

namespace gpumemprof {

std::optional<Finding> find_pinned_rounding(const PinnedUse& use) {
  const uint64_t rounding = less_or_none(use.peak_used_bytes, use.requested_at_peak_bytes);
  if (!is_worth(rounding, use.peak_used_bytes)) return std::nullopt;
  return Finding{
      .kind = FindingKind::kPinnedRounding,
      .severity = Severity::kWarning,
      .title = "pinned host buffers took " + format_bytes(use.peak_used_bytes) + " for " +
               format_bytes(use.requested_at_peak_bytes) +
               " requested: each size is rounded up to a power of two",
      .bytes = rounding,
      .evidence = {{"requested_bytes", use.requested_at_peak_bytes},
                   {"used_bytes", use.peak_used_bytes},
                   {"buffers", use.blocks_at_peak}},
      .stack = use.rounded_stack,
      .fix = "set PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:1 (PyTorch 2.13 or newer), or "
             "pin one buffer whose size is a power of two, and use views of it"};
}

}  // namespace gpumemprof

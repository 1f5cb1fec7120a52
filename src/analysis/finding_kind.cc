#include "analysis/finding_kind.h"

#include <algorithm>
#include <iterator>

namespace gpumemprof {
namespace {

constexpr const char* kFindingKinds[] = {  // by kind
    "leak",
    "growth_in_loop",
    "sizes_rise",
    "fills_to_limit",
    "steady_growth",
    "sawtooth",
    "spike",
    "out_of_memory",
    "refused_though_it_fits",
    "fragmentation",
    "cache_slack",
    "rounding",
    "earlier_peak",
    "graph_pool_slack",
    "stranded_stream_cache",
    "record_stream_pending",
    "settings_conflict",
    "replay_mismatch",
    "inconsistent_trace",
    "pinned_rounding",
    "pinned_cache_growth",
    "nccl_communicators",
    "double_weights_in_phase",
    "killed_by_the_kernel",
    "page_cache_is_not_a_leak",
    "malloc_retention",
    "weights_copied_privately",
    "compile_workers",
    "fork_copy_on_write",
    "shm_left_behind",
    "unrecorded_growth",
    "checkpoint_staging",
};
static_assert(std::size(kFindingKinds) == size_t(FindingKind::kCheckpointStaging) + 1);

}  // namespace

const char* finding_kind_name(FindingKind kind) { return kFindingKinds[size_t(kind)]; }

std::span<const char* const> finding_kind_names() { return kFindingKinds; }

std::optional<FindingKind> finding_kind_of(std::string_view name) {
  const auto known = std::ranges::find(kFindingKinds, name);
  if (known == std::end(kFindingKinds)) return std::nullopt;
  return FindingKind(known - std::begin(kFindingKinds));
}

}  // namespace gpumemprof

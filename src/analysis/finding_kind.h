// What is found in a run. The names are those of JSON and of `--fail-on`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace gpumemprof {

enum class FindingKind : uint8_t {
  // growth
  kLeak,
  kGrowthInLoop,  ///< with every round of a loop without a known step
  kSizesRise,     ///< no leak: the program's data gets larger
  kFillsToLimit,  ///< no leak: a deque with a maxlen, LBFGS's history or the like fills
  // the level over time
  kSteadyGrowth,
  kSawtooth,
  kSpike,
  // an allocator's pool
  kOutOfMemory,
  kRefusedThoughItFits,
  kFragmentation,
  kCacheSlack,
  kRounding,
  kEarlierPeak,
  kGraphPoolSlack,
  kStrandedStreamCache,
  kRecordStreamPending,
  kSettingsConflict,
  kReplayMismatch,
  kInconsistentTrace,
  kPinnedRounding,
  kPinnedCacheGrowth,
  // several processes or models
  kNcclCommunicators,
  kDoubleWeightsInPhase,
  // the host
  kKilledByTheKernel,
  kPageCacheIsNotALeak,
  kMallocRetention,
  kWeightsCopiedPrivately,
  kCompileWorkers,
  kForkCopyOnWrite,
  kShmLeftBehind,
  kUnrecordedGrowth,
  kCheckpointStaging,
};

/// "leak", "growth_in_loop", …
const char* finding_kind_name(FindingKind kind);
std::span<const char* const> finding_kind_names();
std::optional<FindingKind> finding_kind_of(std::string_view name);

}  // namespace gpumemprof

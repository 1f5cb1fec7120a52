// The rules by which a block of a snapshot gets its category: from its stack and its life alone, so
// each has a confidence. What none of them covers is unknown.
#pragma once

#include <cstdint>

#include "analysis/categories/category_rules.h"
#include "analysis/categories/snapshot_work.h"

namespace gpumemprof {

enum class Confidence : uint8_t { kNone, kLow, kMedium, kHigh };
inline constexpr size_t kConfidences = 4;
/// "high", "medium", "low"; "none" of what is unknown.
const char* confidence_name(Confidence confidence);

enum class SnapshotRule : uint8_t {
  kNoRule,
  kWorkspaceFrames,
  kWorkspaceSize,
  kOptimizerKept,
  kOptimizerFreed,
  kFreedByZeroGrad,
  kAccumulated,
  kBackwardKept,
  kBackwardFreed,
  kBackwardKeptUnseen,
  kBackwardFreedUnseen,
  kRecomputedKept,
  kRecomputedFreed,
  kForwardFreedInBackward,
  kForwardMetBackward,
  kForwardFreed,
  kForwardFreedOnly,
  kForwardKeptOnly,
  kForwardLasts,
  kActivationAsBefore,
  kTemporaryAsBefore,
  kCache,
  kCacheGrown,
  kCacheLikely,
  kDataLoading,
  kScattered,
  kReplica,
  kSetUpWithGradient,
  kSetUp,
  kSizeOfGradient,
  kSizeOfGradientAgain,
  kResultFreedInBackward,
  kResultMetBackward,
  kOutsideInput,
  kOutsideFreed,
  kEarlierFreedInBackward,
  kEarlierFreedInOptimizer,
};
inline constexpr size_t kSnapshotRules = 37;

struct RuleFacts {
  const char* name;  ///< in reports and JSON; stays the same
  Category category;
  Confidence confidence;
  const char* reason;  ///< "made in …, and …": a phrase
};
const RuleFacts& facts_of(SnapshotRule rule);

/// What is known of a block when its life ends, or the trace does.
struct SnapshotLife {
  uint64_t size_bytes = 0;
  bool has_history = true;  ///< there are events: else no life is known, only that it was there
  bool was_before = false;  ///< the first event
  bool is_freed = false;
  bool is_freed_in_backward = false;
  bool is_freed_in_setup = false, is_freed_in_optimizer = false, is_freed_by_zero_grad = false;
  bool met_oom = false;  ///< the device's memory ran out during its life: its end is a failure's
  uint32_t calls = 0;    ///< of models that began during its life
  uint32_t steps = 0;    ///< of optimizers that ended during its life
  /// The backward pass, the optimizer's step or the recomputation in which it was made ended.
  bool outlived_backward = false, outlived_optimizer = false, outlived_recomputation = false;
  bool met_backward = false;  ///< one began during its life
  /// And no model was called between; `is_after_call`: one had been called before the block.
  bool met_backward_before_call = false, is_after_call = false;
  bool trace_has_backward = false;
  uint32_t site_rises = 0;  ///< calls in a row, the last one included, that allocated more there
  Category before = Category::kUnknown;  ///< what the last block of its stack turned out to be
  /// No stack tells of backward, as autograd's own threads run no Python: all other events have
  /// one.
  bool is_unseen = false;
};

/// `phase` may differ from that of the stack, where an annotation told of an optimizer's step.
SnapshotRule rule_of(const SnapshotWork& made_in, WorkPhase phase, const SnapshotLife& life);

}  // namespace gpumemprof

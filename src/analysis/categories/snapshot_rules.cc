#include "analysis/categories/snapshot_rules.h"

#include "analysis/categories/torch_frames.h"

namespace gpumemprof {
namespace {

using enum SnapshotRule;

/// Data is there for the call that takes it, and until what takes its place is made.
constexpr uint32_t kCallsOfData = 2;
/// Results of a few calls may happen to get larger; of so many they are put together.
constexpr uint32_t kRisesOfCache = 8;

constexpr RuleFacts kFacts[kSnapshotRules] = {
    {"none", Category::kUnknown, Confidence::kNone, "no rule applies"},
    {"workspace_frames", Category::kWorkspace, Confidence::kHigh,
     "requested by cuBLAS, cuDNN or another library, not for a tensor"},
    {"workspace_size", Category::kWorkspace, Confidence::kMedium,
     "kept, and the size of a cuBLAS workspace"},
    {"optimizer_kept", Category::kOptimizerState, Confidence::kHigh,
     "made in an optimizer's step and live after it"},
    {"optimizer_freed", Category::kTemporary, Confidence::kHigh,
     "made in an optimizer's step and freed in it"},
    {"freed_by_zero_grad", Category::kGradient, Confidence::kHigh, "freed by zero_grad"},
    {"accumulated", Category::kGradient, Confidence::kHigh,
     "made by the node that fills .grad, and live after backward"},
    {"backward_kept", Category::kGradient, Confidence::kMedium,
     "made in backward and live after it"},
    {"backward_freed", Category::kTemporary, Confidence::kHigh, "made in backward and freed in it"},
    {"backward_kept_without_stack", Category::kGradient, Confidence::kMedium,
     "made on a thread without Python, as autograd's threads are, and live after backward"},
    {"backward_freed_without_stack", Category::kTemporary, Confidence::kMedium,
     "made on a thread without Python, as autograd's threads are, and freed in backward"},
    {"recomputed_kept", Category::kActivation, Confidence::kMedium,
     "made while backward recomputes forward, and live after that"},
    {"recomputed_freed", Category::kTemporary, Confidence::kMedium,
     "made while backward recomputes forward, and freed there"},
    {"forward_freed_in_backward", Category::kActivation, Confidence::kHigh,
     "made in a module's call and freed by backward"},
    {"forward_met_backward", Category::kActivation, Confidence::kMedium,
     "made in a module's call and live when backward began"},
    {"forward_freed", Category::kTemporary, Confidence::kHigh,
     "made in a module's call and freed before backward"},
    {"forward_freed_only", Category::kTemporary, Confidence::kMedium,
     "made in a module's call and freed, in a trace without backward"},
    {"forward_kept_only", Category::kActivation, Confidence::kLow,
     "made in a module's call and kept, in a trace without backward"},
    {"forward_lasts", Category::kFrameworkOther, Confidence::kLow,
     "made in a module's call and live two steps later"},
    {"activation_as_before", Category::kActivation, Confidence::kMedium,
     "made in a module's call that is still running, where the previous block was an activation"},
    {"temporary_as_before", Category::kTemporary, Confidence::kMedium,
     "made in a module's call that is still running, where the previous block was a temporary"},
    {"cache", Category::kKvCache, Confidence::kMedium,
     "made in a module's call without gradients, live in the next one and larger with each"},
    {"cache_grown", Category::kKvCache, Confidence::kMedium,
     "made in a module's call, live in the next one and larger with each of eight or more, in a "
     "trace without backward"},
    {"cache_likely", Category::kKvCache, Confidence::kLow,
     "made in a module's call, live in the next one and larger with each, in a trace without "
     "backward"},
    {"data_loading", Category::kInput, Confidence::kHigh, "made by a DataLoader"},
    {"scattered", Category::kInput, Confidence::kHigh,
     "a device's part of a batch, made by DataParallel"},
    {"replica", Category::kParameter, Confidence::kHigh,
     "a copy of a parameter, made by DataParallel on another device for one call"},
    {"set_up_with_gradient", Category::kParameter, Confidence::kHigh,
     "made where PyTorch creates or moves a module's tensors, and a gradient has its size"},
    {"set_up", Category::kParameter, Confidence::kMedium,
     "made where PyTorch creates or moves a module's tensors: a parameter or a buffer"},
    {"size_of_gradient", Category::kParameter, Confidence::kMedium,
     "live to the end of the trace, one for each gradient of its size"},
    {"size_of_gradient_again", Category::kOptimizerState, Confidence::kMedium,
     "live through the whole trace, several for each gradient of its size"},
    {"result_freed_in_backward", Category::kActivation, Confidence::kMedium,
     "made outside of modules after a call, and freed by backward"},
    {"result_met_backward", Category::kActivation, Confidence::kLow,
     "made outside of modules, between a call and the backward that it lived to"},
    {"outside_input", Category::kInput, Confidence::kMedium,
     "made outside of modules, and live while one was called"},
    {"outside_freed", Category::kTemporary, Confidence::kMedium,
     "made outside of modules, and freed before one was called"},
    {"earlier_freed_in_backward", Category::kActivation, Confidence::kMedium,
     "live before the trace, and freed by backward"},
    {"earlier_freed_in_optimizer", Category::kOptimizerState, Confidence::kMedium,
     "live before the trace, and replaced in an optimizer's step"},
};

SnapshotRule of_backward(const SnapshotWork& made_in, const SnapshotLife& life) {
  // A node that runs frees what backward needed; gradients are freed by the program.
  const bool is_kept = life.outlived_backward && !life.is_freed_in_backward;
  if (life.is_unseen) {
    if (is_kept) return kBackwardKeptUnseen;
    return life.is_freed ? kBackwardFreedUnseen : kNoRule;
  }
  if (made_in.is_recomputed) {
    if (life.outlived_recomputation) return kRecomputedKept;
    return life.is_freed ? kRecomputedFreed : kNoRule;
  }
  if (made_in.is_accumulated && (is_kept || !life.is_freed)) return kAccumulated;
  if (is_kept) return kBackwardKept;
  return life.is_freed ? kBackwardFreed : kNoRule;
}

/// What is packed for the way to the other devices is freed on arrival; a replica lives through its
/// call.
SnapshotRule of_replica(const SnapshotLife& life) {
  const bool is_packed = life.trace_has_backward && life.is_freed && !life.met_oom &&
                         !life.met_backward && !life.is_freed_in_backward;
  return is_packed ? kForwardFreed : kReplica;
}

SnapshotRule of_forward(const SnapshotWork& made_in, const SnapshotLife& life) {
  if (made_in.is_scattered) return kScattered;
  if (made_in.is_replica) return of_replica(life);
  if (life.is_freed_in_backward) return kForwardFreedInBackward;
  if (life.steps >= kLastsForSteps) return kForwardLasts;
  if (life.met_backward) return kForwardMetBackward;
  const bool is_freed = life.is_freed && !life.met_oom;
  if (life.trace_has_backward) {
    if (is_freed) return kForwardFreed;
    if (life.before == Category::kActivation) return kActivationAsBefore;
    return life.before == Category::kTemporary ? kTemporaryAsBefore : kNoRule;
  }
  // A program that learns keeps what grows too; here none is seen to. What the last call leaves no
  // other call meets: it is what those before it left.
  if (life.site_rises > 0 && (life.calls > 0 || life.before == Category::kKvCache)) {
    if (made_in.is_without_gradients) return kCache;
    return life.site_rises >= kRisesOfCache ? kCacheGrown : kCacheLikely;
  }
  return is_freed ? kForwardFreedOnly : kForwardKeptOnly;
}

SnapshotRule of_outside(const SnapshotWork& made_in, const SnapshotLife& life) {
  if (life.was_before) {
    if (life.is_freed_in_optimizer) return kEarlierFreedInOptimizer;
    return life.is_freed_in_backward ? kEarlierFreedInBackward : kNoRule;
  }
  if (!made_in.has_python && !made_in.has_native) return kNoRule;
  if (life.steps >= kLastsForSteps) return kNoRule;
  if (life.met_backward_before_call) {
    if (life.is_freed_in_backward) return kResultFreedInBackward;
    return life.is_after_call ? kResultMetBackward : kNoRule;
  }
  if (life.calls > 0) {
    const bool is_of_step = life.trace_has_backward || life.calls <= kCallsOfData;
    return is_of_step ? kOutsideInput : kNoRule;
  }
  return life.is_freed ? kOutsideFreed : kNoRule;
}

/// Nothing is known but that it is there.
SnapshotRule of_presence(const SnapshotWork& made_in, WorkPhase phase) {
  if (phase == WorkPhase::kBackward && made_in.is_accumulated) return kAccumulated;
  if (phase == WorkPhase::kDataLoading) return kDataLoading;
  if (made_in.is_scattered) return kScattered;
  if (made_in.is_replica) return kReplica;
  return phase == WorkPhase::kNone && made_in.is_in_setup ? kSetUp : kNoRule;
}

SnapshotRule of_phase(const SnapshotWork& made_in, WorkPhase phase, const SnapshotLife& life) {
  switch (phase) {
    case WorkPhase::kBackward:
      return of_backward(made_in, life);
    case WorkPhase::kOptimizer:
      if (life.outlived_optimizer) return kOptimizerKept;
      return life.is_freed ? kOptimizerFreed : kNoRule;
    case WorkPhase::kDataLoading:
      return kDataLoading;
    case WorkPhase::kForward:
    case WorkPhase::kEvaluation:
      return of_forward(made_in, life);
    case WorkPhase::kNone:
      break;
  }
  // What is converted on its way to its place does not outlive the setting up.
  if (made_in.is_in_setup) {
    const bool is_temporary = life.is_freed && life.is_freed_in_setup && life.calls == 0;
    return is_temporary ? kOutsideFreed : kSetUp;
  }
  return of_outside(made_in, life);
}

}  // namespace

const char* confidence_name(Confidence confidence) {
  static constexpr const char* kNames[kConfidences] = {"none", "low", "medium", "high"};
  return kNames[static_cast<size_t>(confidence) % kConfidences];
}

const RuleFacts& facts_of(SnapshotRule rule) {
  const auto index = static_cast<size_t>(rule);
  return kFacts[index < kSnapshotRules ? index : 0];
}

SnapshotRule rule_of(const SnapshotWork& made_in, WorkPhase phase, const SnapshotLife& life) {
  if (made_in.is_workspace) return kWorkspaceFrames;
  if (life.is_freed_by_zero_grad) return kFreedByZeroGrad;
  const SnapshotRule rule =
      life.has_history ? of_phase(made_in, phase, life) : of_presence(made_in, phase);
  // Native frames, where there are some, would have identified a workspace.
  const bool may_be_workspace = !made_in.has_native && !life.is_freed;
  if (may_be_workspace && life.size_bytes == kCublasWorkspaceBytes) return kWorkspaceSize;
  return rule;
}

}  // namespace gpumemprof

#include "analysis/category_rules.h"

#include "trace/event.h"

namespace gpumemprof {
namespace {

/// Nothing that belongs to one step lives through two.
constexpr uint32_t kLastsForSteps = 2;

Category of_role(uint64_t role) {
  switch (static_cast<StorageRole>(role)) {
    case StorageRole::kParameter:
      return Category::kParameter;
    case StorageRole::kBuffer:
      return Category::kBuffer;
    case StorageRole::kGradient:
      return Category::kGradient;
    case StorageRole::kOptimizerState:
      return Category::kOptimizerState;
  }
  return Category::kUnknown;
}

/// What autograd saved is an activation, unless it was there before the model ran: data, or what
/// one backward after the other uses again.
Category of_saved(const Attribution& made_in, const BlockLife& life) {
  const bool is_constant = life.steps_saved_in > kLastsForSteps;
  if (is_constant && life.has_history && !life.is_output) return Category::kParameter;
  if (is_constant && !life.has_history && made_in.phase == WorkPhase::kForward) {
    return Category::kBuffer;
  }
  if (made_in.phase == WorkPhase::kDataLoading) return Category::kInput;
  if (life.is_output || made_in.phase != WorkPhase::kNone) return Category::kActivation;
  // Autograd knows a view of data like a result of its own. Data is there before a model is called,
  // and does not go with the graph.
  const bool is_result = life.has_history && (life.is_freed_in_backward || life.calls == 0);
  return is_result ? Category::kActivation : Category::kInput;
}

/// Without gradients nothing is saved: what a call leaves for the next ones is a cache if it grows
/// with each call, or is kept through several.
Category of_evaluation(const BlockLife& life) {
  if (life.calls > 1 || (life.calls == 1 && life.site_grows)) return Category::kKvCache;
  return Category::kTemporary;
}

Category of_forward(const BlockLife& life) {
  // Nobody but the graph lets go of memory while an autograd node runs. It holds tensors that are
  // not seen to be saved where the program keeps them in its own way (saved_tensors_hooks).
  if (life.is_freed_in_backward) return Category::kActivation;
  if (life.steps < kLastsForSteps) return Category::kTemporary;
  // Each step has one of its own, and somebody keeps it. What is made once is for all steps.
  return life.is_made_again ? Category::kActivation : Category::kFrameworkOther;
}

/// Made outside of a model: data if a model was called while it lived.
Category of_outside(const Attribution& made_in, const BlockLife& life) {
  if (made_in.is_in_setup && (life.calls > 0 || !life.is_freed)) return Category::kParameter;
  if (life.calls > 0) return Category::kInput;
  return life.is_freed ? Category::kTemporary : Category::kUnknown;
}

}  // namespace

const char* category_name(Category category) {
  static constexpr const char* kNames[kCategories] = {
      "unknown", "parameter", "buffer",   "gradient",  "optimizer state", "activation",
      "input",   "temporary", "KV cache", "workspace", "framework other"};
  const auto index = static_cast<size_t>(category);
  return kNames[index < kCategories ? index : 0];
}

Category category_of(const Attribution& made_in, const BlockLife& life) {
  if (const Category told = of_role(life.role); told != Category::kUnknown) return told;
  if (made_in.is_workspace) return Category::kWorkspace;
  if (made_in.is_recomputed) {
    const bool is_kept = life.is_saved || life.outlived_recomputation;
    return is_kept ? Category::kActivation : Category::kTemporary;
  }
  if (life.is_saved) return of_saved(made_in, life);
  switch (made_in.phase) {
    case WorkPhase::kBackward:
      return life.outlived_backward ? Category::kGradient : Category::kTemporary;
    case WorkPhase::kOptimizer:
      return life.outlived_optimizer ? Category::kOptimizerState : Category::kTemporary;
    case WorkPhase::kDataLoading:
      return Category::kInput;
    case WorkPhase::kEvaluation:
      return of_evaluation(life);
    case WorkPhase::kForward:
      return of_forward(life);
    case WorkPhase::kNone:
      return of_outside(made_in, life);
  }
  return Category::kUnknown;
}

}  // namespace gpumemprof

#include "analysis/categories/category_rules.h"

#include "trace/event.h"

namespace gpumemprof {
namespace {

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
    default:
      return Category::kUnknown;
  }
}

Verdict unknown(WhyUnknown why) { return {Category::kUnknown, why}; }

/// Freed before the step or the call that it was made in can have ended.
bool is_freed_at_once(const BlockLife& life) {
  return life.is_freed && life.steps == 0 && life.calls == 0;
}

/// What autograd saved is an activation, unless it was there before the model ran: data. A tensor
/// that requires a gradient and that nobody named may be a parameter as well.
Verdict of_saved(const Attribution& made_in, const BlockLife& life) {
  const bool is_saved_again = life.passes_saved_in > kLastsForSteps;
  if (is_saved_again && !life.is_output) {
    if (is_in_call(made_in.phase) && !life.has_history) return {Category::kFrameworkOther};
    if (life.has_history && !life.is_constant) return unknown(WhyUnknown::kSavedAgain);
  }
  if (made_in.phase == WorkPhase::kDataLoading) return {Category::kInput};
  if (life.is_output || made_in.phase != WorkPhase::kNone || made_in.is_computed)
    return {Category::kActivation};
  // The graph let go of it, or it was made after the model had run, and a variable may have kept it
  // until the next step made another. Data is there before.
  const bool is_after_call = life.calls == 0 || (life.steps == 1 && !life.is_before_calls);
  const bool is_left_by_graph = life.is_freed_in_backward || is_after_call;
  if (life.has_history && is_left_by_graph && life.passes_saved_in <= 1) {
    return {Category::kActivation};
  }
  if (made_in.is_in_setup) return unknown(WhyUnknown::kSetUp);
  if (!life.has_history || life.is_constant) return {Category::kInput};
  return unknown(WhyUnknown::kSaved);
}

/// Without gradients nothing is saved: what a call leaves for the next one and replaces by more is
/// a cache, also the last one of a request that is kept.
Verdict of_evaluation(const BlockLife& life) {
  const bool is_kept = life.site_keeps && !life.site_replaces;
  // No call replaced what the last one left in a cache.
  const bool is_last_of_cache = life.site_replaces && !life.is_freed_in_call;
  if (!is_kept && is_freed_at_once(life) && !is_last_of_cache) return {Category::kTemporary};
  if (is_cache_site(life)) return {Category::kKvCache};
  if (is_kept) return unknown(WhyUnknown::kKeptResult);
  // A result in a variable that the next call's replaced, unless it may have been read by that call.
  if (life.is_freed && life.steps == 0 && life.calls == 1 && !life.may_be_state)
    return {Category::kTemporary};
  return unknown(life.calls == 0 && life.steps == 0 ? WhyUnknown::kNotFreed
                                                    : WhyUnknown::kKeptResult);
}

/// A library's handle makes it at its first use and keeps it.
bool is_kept_workspace(const BlockLife& life) {
  return life.may_be_workspace && !life.is_freed && life.steps >= kLastsForSteps;
}

Verdict of_forward(const BlockLife& life) {
  if (is_kept_workspace(life)) return {Category::kWorkspace};
  // Nobody but the graph lets go of memory while an autograd node runs. It holds tensors that are
  // not seen to be saved where the program keeps them in its own way (saved_tensors_hooks).
  if (life.is_freed_in_backward) return {Category::kActivation};
  if (life.is_freed && life.steps == 0) return {Category::kTemporary};
  // Each step has one of its own, and somebody keeps it. What is made once is for all steps.
  if (life.is_made_again) return {Category::kActivation};
  if (life.steps >= kLastsForSteps) return {Category::kFrameworkOther};
  return unknown(life.is_freed ? WhyUnknown::kKeptResult : WhyUnknown::kNotFreed);
}

Verdict of_backward(const Attribution& made_in, const BlockLife& life) {
  if (!life.outlived_backward) return {Category::kTemporary};
  // A thread of gloo's may let go of what it sent only after backward. A gradient waits for its step.
  if (made_in.is_collective && life.is_freed && life.steps == 0) return {Category::kTemporary};
  if (life.has_been_looked_at) {
    return is_kept_workspace(life) ? Verdict{Category::kWorkspace}
                                   : unknown(WhyUnknown::kKeptFromBackward);
  }
  return {Category::kGradient};
}

Verdict of_step(const BlockLife& life) {
  if (!life.outlived_optimizer) return {Category::kTemporary};
  if (life.was_state) return {Category::kOptimizerState};
  if (life.has_been_looked_at) return unknown(WhyUnknown::kKeptFromStep);
  return {Category::kOptimizerState};
}

/// Made outside of a model, for reasons that its life does not show.
Verdict of_outside(const Attribution& made_in, const BlockLife& life) {
  // An optimizer hands on what its closure returned, when its step has ended.
  const uint32_t own_steps = made_in.is_in_step ? 1 : 0;
  if (life.is_freed && life.calls == 0 && life.steps <= own_steps) return {Category::kTemporary};
  // Each step made it anew, gave it to its model or to the loss, and let go of it.
  const bool is_of_one_call = life.is_freed && life.steps == 0 && life.is_before_calls;
  if (is_of_one_call && life.is_made_again && !made_in.is_in_setup)
    return {made_in.is_computed ? Category::kTemporary : Category::kInput};
  return unknown(made_in.is_in_setup ? WhyUnknown::kSetUp : WhyUnknown::kOutside);
}

/// A copy that a model's call, or backward, makes of a weight for its own use is none of the
/// program's.
bool is_weight_copy(const Attribution& made_in, const BlockLife& life) {
  const bool is_outside = made_in.phase == WorkPhase::kNone ||
                          made_in.phase == WorkPhase::kOptimizer ||
                          made_in.phase == WorkPhase::kDataLoading;
  return (life.is_weight_copy || made_in.is_weight_copy) && is_outside && !is_freed_at_once(life);
}

}  // namespace

const char* category_name(Category category) {
  static constexpr const char* kNames[kCategories] = {
      "unknown", "parameter", "buffer",   "gradient",  "optimizer state", "activation",
      "input",   "temporary", "KV cache", "workspace", "framework other", "weight copy"};
  const auto index = static_cast<size_t>(category);
  return kNames[index < kCategories ? index : 0];
}

const char* why_unknown_text(WhyUnknown why) {
  static constexpr const char* kTexts[kWhyUnknown] = {
      "",
      "allocated while setting up a module that has no name: a parameter or a buffer",
      "autograd saved it in several steps: a parameter without a name, or data that requires a "
      "gradient",
      "autograd saved it, and it requires a gradient: a parameter without a name, data, or a kept "
      "result",
      "allocated in a model's call and still live after it: a result, a cache or a table",
      "allocated in backward, still live, and not a parameter's gradient at the end of the step",
      "allocated in an optimizer's step, still live, and not in its state at the end of the step",
      "allocated in a model's call and not freed when the recording ended",
      "allocated outside of a model; purpose unknown"};
  const auto index = static_cast<size_t>(why);
  return kTexts[index < kWhyUnknown ? index : 0];
}

bool is_in_call(WorkPhase phase) {
  return phase == WorkPhase::kForward || phase == WorkPhase::kEvaluation;
}

bool is_cache_site(const BlockLife& life) {
  if (life.site_keeps) return life.site_replaces;
  return life.site_grows || life.site_replaces;
}

namespace {

Verdict verdict_without_leaks(const Attribution& made_in, const BlockLife& life) {
  if (const Category told = of_role(life.role); told != Category::kUnknown) return {told};
  if (made_in.is_workspace) return {Category::kWorkspace};
  if (is_weight_copy(made_in, life)) return {Category::kWeightCopy};
  if (made_in.is_reducer && !is_freed_at_once(life)) return {Category::kFrameworkOther};
  if (made_in.is_recomputed) {
    const bool is_kept = life.is_saved || life.outlived_recomputation;
    return {is_kept ? Category::kActivation : Category::kTemporary};
  }
  if (life.is_saved) return of_saved(made_in, life);
  switch (made_in.phase) {
    case WorkPhase::kBackward:
      return of_backward(made_in, life);
    case WorkPhase::kOptimizer:
      return of_step(life);
    case WorkPhase::kDataLoading:
      return {Category::kInput};
    case WorkPhase::kEvaluation:
      return of_evaluation(life);
    case WorkPhase::kForward:
      return of_forward(life);
    case WorkPhase::kNone:
      return of_outside(made_in, life);
  }
  return {};
}

}  // namespace

Verdict verdict_of(const Attribution& made_in, const BlockLife& life) {
  const Verdict verdict = verdict_without_leaks(made_in, life);
  const bool is_cache = verdict.category == Category::kUnknown &&
                        (life.is_told_cache || made_in.is_kv_update);
  return is_cache ? Verdict{Category::kKvCache} : verdict;
}

}  // namespace gpumemprof

// What a block is, by what is known of its life: one test a rule.
#include "analysis/categories/category_rules.h"

#include <gtest/gtest.h>
#include <string.h>

#include "trace/event.h"

namespace gpumemprof {
namespace {

Attribution made_in(WorkPhase phase) {
  Attribution work;
  work.phase = phase;
  return work;
}

Category category_of(const Attribution& work, const BlockLife& life) {
  return verdict_of(work, life).category;
}

WhyUnknown why_of(const Attribution& work, const BlockLife& life) {
  const Verdict verdict = verdict_of(work, life);
  EXPECT_EQ(verdict.category, Category::kUnknown);
  return verdict.why;
}

TEST(CategoryRules, WhatATensorIsCalledCountsMoreThanWhereItWasMade) {
  const std::pair<StorageRole, Category> roles[] = {
      {StorageRole::kParameter, Category::kParameter},
      {StorageRole::kBuffer, Category::kBuffer},
      {StorageRole::kGradient, Category::kGradient},
      {StorageRole::kOptimizerState, Category::kOptimizerState}};
  for (const auto& [role, expected] : roles) {
    const BlockLife life{.role = static_cast<uint64_t>(role), .is_saved = true};
    EXPECT_EQ(category_of(made_in(WorkPhase::kForward), life), expected);
  }
}

TEST(CategoryRules, ALibrarysScratchMemoryIsItsWorkspaceWhereverItIsAskedFor) {
  for (WorkPhase phase : {WorkPhase::kForward, WorkPhase::kBackward, WorkPhase::kNone}) {
    Attribution work = made_in(phase);
    work.is_workspace = true;
    EXPECT_EQ(category_of(work, {.is_freed = true}), Category::kWorkspace);
    EXPECT_EQ(category_of(work, {.steps = 5, .calls = 5}), Category::kWorkspace);
  }
}

TEST(CategoryRules, WhatACallMadeOnceInAWorkspacesSizeForAllStepsIsAWorkspace) {
  const BlockLife kept{.steps = 2, .is_made_again = true, .may_be_workspace = true};
  EXPECT_EQ(category_of(made_in(WorkPhase::kForward), kept), Category::kWorkspace);
  BlockLife from_backward = kept;
  from_backward.outlived_backward = true;
  EXPECT_EQ(category_of(made_in(WorkPhase::kBackward), from_backward), Category::kGradient)
      << "gradients may have no names";
  from_backward.has_been_looked_at = true;
  EXPECT_EQ(category_of(made_in(WorkPhase::kBackward), from_backward), Category::kWorkspace);
  BlockLife saved = kept, of_one_step = kept, freed = kept;
  saved.is_saved = true, of_one_step.steps = 1, freed.is_freed = true;
  for (const BlockLife& life : {saved, of_one_step, freed})
    EXPECT_EQ(category_of(made_in(WorkPhase::kForward), life), Category::kActivation);
}

TEST(CategoryRules, ARoleThatIsNotKnownSaysNothing) {
  EXPECT_EQ(category_of(made_in(WorkPhase::kDataLoading), {.role = 77}), Category::kInput);
}

TEST(CategoryRules, WhatAutogradSavesOfAModuleIsAnActivation) {
  EXPECT_EQ(category_of(made_in(WorkPhase::kForward), {.is_saved = true}), Category::kActivation);
}

TEST(CategoryRules, WhatAFunctionOfAutogradsComputesIsNoData) {
  Attribution computed = made_in(WorkPhase::kNone);
  computed.is_computed = true;
  EXPECT_EQ(category_of(computed, {.is_saved = true, .calls = 1}), Category::kActivation);
  const BlockLife of_each_step{
      .calls = 1, .is_freed = true, .is_made_again = true, .is_before_calls = true};
  EXPECT_EQ(category_of(computed, of_each_step), Category::kTemporary);
  EXPECT_EQ(category_of(made_in(WorkPhase::kNone), of_each_step), Category::kInput);
}

TEST(CategoryRules, WhatAutogradSavesOfTheDataIsInput) {
  const Attribution outside = made_in(WorkPhase::kNone);
  EXPECT_EQ(category_of(outside, {.is_saved = true, .calls = 1}), Category::kInput);
  // A view of data has what autograd keeps of a tensor, as a result has, and needs no gradient.
  BlockLife view{.is_saved = true, .has_history = true, .is_constant = true, .calls = 1};
  EXPECT_EQ(category_of(outside, view), Category::kInput);
  view.passes_saved_in = 9;
  EXPECT_EQ(category_of(outside, view), Category::kInput) << "token ids that every step uses";
}

TEST(CategoryRules, WhatIsMadeOfAModulesResultOutsideOfItIsAnActivation) {
  const Attribution outside = made_in(WorkPhase::kNone);
  EXPECT_EQ(category_of(outside, {.is_saved = true, .has_history = true}), Category::kActivation);
  EXPECT_EQ(category_of(outside, {.is_saved = true, .is_output = true}), Category::kActivation);
  // A variable kept it until the next step made another.
  BlockLife kept{.is_saved = true, .has_history = true, .passes_saved_in = 1, .steps = 1, .calls = 1};
  EXPECT_EQ(category_of(outside, kept), Category::kActivation);
  kept.is_before_calls = true;
  EXPECT_EQ(why_of(outside, kept), WhyUnknown::kSaved);
}

TEST(CategoryRules, WhatNeedsAGradientAndWasThereBeforeMayBeAParameterOrData) {
  const Attribution outside = made_in(WorkPhase::kNone);
  BlockLife life{.is_saved = true, .has_history = true, .passes_saved_in = 3, .calls = 3};
  EXPECT_EQ(why_of(outside, life), WhyUnknown::kSavedAgain);
  life.passes_saved_in = 1;
  EXPECT_EQ(why_of(outside, life), WhyUnknown::kSaved);
  Attribution set_up = outside;
  set_up.is_in_setup = true;
  EXPECT_EQ(why_of(set_up, life), WhyUnknown::kSetUp);
}

TEST(CategoryRules, ATableThatACallMakesOnceAndEachStepSavesIsNoBuffer) {
  const BlockLife life{.is_saved = true, .passes_saved_in = 3, .steps = 3};
  EXPECT_EQ(category_of(made_in(WorkPhase::kForward), life), Category::kFrameworkOther);
}

TEST(CategoryRules, ACopyOfAWeightIsOneWhereTheProgramMadeItAndKeepsIt) {
  for (WorkPhase phase : {WorkPhase::kNone, WorkPhase::kOptimizer}) {
    BlockLife life{.is_weight_copy = true, .is_saved = true, .steps = 1, .calls = 1};
    EXPECT_EQ(category_of(made_in(phase), life), Category::kWeightCopy);
    life.role = 1;
    EXPECT_EQ(category_of(made_in(phase), life), Category::kParameter) << "told";
  }
  Attribution deep_copy = made_in(WorkPhase::kNone);
  deep_copy.is_weight_copy = true;
  EXPECT_EQ(category_of(deep_copy, {.calls = 1}), Category::kWeightCopy);
  EXPECT_EQ(category_of(deep_copy, {.is_freed = true}), Category::kTemporary);
  EXPECT_EQ(category_of(made_in(WorkPhase::kForward), {.is_weight_copy = true, .is_freed = true}),
            Category::kTemporary)
      << "a call's own cast";
}

TEST(CategoryRules, BucketsOfGradientsAreTheFrameworksFromTheFirstStepOn) {
  for (const WorkPhase phase : {WorkPhase::kNone, WorkPhase::kForward}) {
    Attribution work = made_in(phase);
    work.is_reducer = true;
    EXPECT_EQ(category_of(work, {.steps = 1, .calls = 1, .is_freed = true}),
              Category::kFrameworkOther);
    EXPECT_EQ(category_of(work, {}), Category::kFrameworkOther);
    EXPECT_EQ(category_of(work, {.is_freed = true}), Category::kTemporary);
    EXPECT_EQ(category_of(work, {.role = static_cast<uint64_t>(StorageRole::kGradient)}),
              Category::kGradient)
        << "a view of the bucket";
  }
}

TEST(CategoryRules, WhatACollectiveLetsGoOfAfterBackwardIsNoGradient) {
  Attribution work = made_in(WorkPhase::kBackward);
  work.is_collective = true;
  const BlockLife late{.outlived_backward = true, .is_freed = true};
  EXPECT_EQ(category_of(work, late), Category::kTemporary);
  EXPECT_EQ(category_of(made_in(WorkPhase::kBackward), late), Category::kGradient);
  BlockLife shard = late;
  shard.steps = 1;
  EXPECT_EQ(category_of(work, shard), Category::kGradient);
  EXPECT_EQ(category_of(work, {.outlived_backward = true}), Category::kGradient);
}

TEST(CategoryRules, WhatALookFoundNoRoleForHasNone) {
  BlockLife life{.outlived_backward = true, .outlived_optimizer = true};
  EXPECT_EQ(category_of(made_in(WorkPhase::kBackward), life), Category::kGradient);
  EXPECT_EQ(category_of(made_in(WorkPhase::kOptimizer), life), Category::kOptimizerState);
  life.has_been_looked_at = true;
  EXPECT_EQ(why_of(made_in(WorkPhase::kBackward), life), WhyUnknown::kKeptFromBackward);
  EXPECT_EQ(why_of(made_in(WorkPhase::kOptimizer), life), WhyUnknown::kKeptFromStep);
}

TEST(CategoryRules, WhatBackwardLeavesIsAGradientAndTheRestOfItTemporary) {
  const Attribution backward = made_in(WorkPhase::kBackward);
  EXPECT_EQ(category_of(backward, {.outlived_backward = true}), Category::kGradient);
  EXPECT_EQ(category_of(backward, {}), Category::kTemporary);
}

TEST(CategoryRules, WhatAStepOfAnOptimizerLeavesIsItsState) {
  const Attribution step = made_in(WorkPhase::kOptimizer);
  EXPECT_EQ(category_of(step, {.outlived_optimizer = true}), Category::kOptimizerState);
  EXPECT_EQ(category_of(step, {}), Category::kTemporary);
}

TEST(CategoryRules, WhatCheckpointingComputesAgainIsAnActivationForAsLongAsItIsNeeded) {
  Attribution again = made_in(WorkPhase::kBackward);
  again.is_recomputed = true;
  EXPECT_EQ(category_of(again, {.outlived_recomputation = true}), Category::kActivation);
  EXPECT_EQ(category_of(again, {.is_saved = true}), Category::kActivation);
  EXPECT_EQ(category_of(again, {}), Category::kTemporary);
}

TEST(CategoryRules, WhatOnlyTheGraphHeldIsAnActivation) {
  const BlockLife life{.is_freed = true, .is_freed_in_backward = true};
  EXPECT_EQ(category_of(made_in(WorkPhase::kForward), life), Category::kActivation);
}

TEST(CategoryRules, WhatEachStepMakesInAModuleAndIsKeptIsAnActivation) {
  const Attribution forward = made_in(WorkPhase::kForward);
  EXPECT_EQ(category_of(forward, {.steps = 2, .is_made_again = true}), Category::kActivation);
  EXPECT_EQ(category_of(forward, {.steps = 1, .is_made_again = true}), Category::kActivation);
  EXPECT_EQ(category_of(forward, {.is_made_again = true}), Category::kActivation) << "at the end";
  EXPECT_EQ(category_of(forward, {.is_freed = true, .is_made_again = true}), Category::kTemporary);
  EXPECT_EQ(category_of(forward, {.steps = 2}), Category::kFrameworkOther) << "made once";
  EXPECT_EQ(why_of(forward, {.steps = 1}), WhyUnknown::kNotFreed);
  EXPECT_EQ(why_of(forward, {.steps = 1, .is_freed = true}), WhyUnknown::kKeptResult);
}

TEST(CategoryRules, WhatGrowsFromCallToCallWithoutGradientsIsACache) {
  const Attribution evaluation = made_in(WorkPhase::kEvaluation);
  EXPECT_EQ(category_of(evaluation, {.calls = 1, .site_grows = true}), Category::kKvCache);
  EXPECT_EQ(category_of(evaluation, {.site_grows = true}), Category::kKvCache) << "the last call's";
  EXPECT_EQ(category_of(evaluation, {.is_freed = true}), Category::kTemporary);
  EXPECT_EQ(category_of(evaluation, {.is_freed = true, .site_grows = true}), Category::kTemporary);
}

TEST(CategoryRules, WhatALeakIsNamedIsNotUnknown) {
  const BlockLife kept{.calls = 9, .site_keeps = true};
  BlockLife told = kept;
  told.is_told_cache = true;
  for (WorkPhase phase : {WorkPhase::kEvaluation, WorkPhase::kNone, WorkPhase::kForward}) {
    EXPECT_EQ(category_of(made_in(phase), kept), Category::kUnknown);
    EXPECT_EQ(category_of(made_in(phase), told), Category::kKvCache);
  }
  told.role = static_cast<uint64_t>(StorageRole::kParameter);
  EXPECT_EQ(category_of(made_in(WorkPhase::kNone), told), Category::kParameter);
}

TEST(CategoryRules, ACacheThatItsRequestLeavesBehindIsOneStill) {
  const Attribution evaluation = made_in(WorkPhase::kEvaluation);
  EXPECT_EQ(category_of(evaluation, {.calls = 9, .site_keeps = true, .site_replaces = true}),
            Category::kKvCache);
  EXPECT_EQ(category_of(evaluation,
                        {.is_freed = true, .is_freed_in_call = true, .site_replaces = true}),
            Category::kTemporary);
  EXPECT_EQ(category_of(evaluation, {.is_freed = true, .site_replaces = true}), Category::kKvCache)
      << "the last one, after its call";
  EXPECT_EQ(category_of(evaluation, {.is_freed = true, .site_grows = true}), Category::kTemporary);
}

TEST(CategoryRules, AResultThatIsKeptAfterAnEvaluationIsNeitherTemporaryNorACache) {
  const Attribution evaluation = made_in(WorkPhase::kEvaluation);
  EXPECT_EQ(why_of(evaluation, {.calls = 1}), WhyUnknown::kKeptResult) << "the last result";
  EXPECT_EQ(category_of(evaluation, {.calls = 1, .is_freed = true}), Category::kTemporary)
      << "one that the next call's replaced";
  EXPECT_EQ(why_of(evaluation, {.calls = 1, .is_freed = true, .may_be_state = true}),
            WhyUnknown::kKeptResult)
      << "or read";
  EXPECT_EQ(why_of(evaluation, {.steps = 1, .calls = 1, .is_freed = true}),
            WhyUnknown::kKeptResult);
  EXPECT_EQ(why_of(evaluation, {.calls = 2, .is_freed = true}), WhyUnknown::kKeptResult);
  EXPECT_EQ(why_of(evaluation, {}), WhyUnknown::kNotFreed);
  EXPECT_EQ(why_of(evaluation, {.calls = 9, .site_grows = true, .site_keeps = true}),
            WhyUnknown::kKeptResult);
}

TEST(CategoryRules, WhatIsMadeOutsideAndNotSavedIsTemporaryOrUnknown) {
  const Attribution outside = made_in(WorkPhase::kNone);
  EXPECT_EQ(category_of(outside, {.is_freed = true}), Category::kTemporary);
  EXPECT_EQ(why_of(outside, {}), WhyUnknown::kOutside);
  EXPECT_EQ(why_of(outside, {.calls = 1, .is_freed = true}), WhyUnknown::kOutside);
  EXPECT_EQ(why_of(outside, {.steps = 1, .is_freed = true}), WhyUnknown::kOutside);
  Attribution closure = outside;
  closure.is_in_step = true;
  EXPECT_EQ(category_of(closure, {.steps = 1, .is_freed = true}), Category::kTemporary);
  EXPECT_EQ(why_of(closure, {.steps = 2, .is_freed = true}), WhyUnknown::kOutside);
  EXPECT_EQ(why_of(closure, {.steps = 1}), WhyUnknown::kOutside);
  Attribution set_up = outside;
  set_up.is_in_setup = true;
  EXPECT_EQ(why_of(set_up, {.calls = 5}), WhyUnknown::kSetUp) << "a parameter or a buffer";
}

TEST(CategoryRules, WhatEachStepMakesBeforeItsModelsCallAndLetsGoOfIsInput) {
  const Attribution outside = made_in(WorkPhase::kNone);
  const BlockLife batch{.calls = 1, .is_freed = true, .is_made_again = true, .is_before_calls = true};
  EXPECT_EQ(category_of(outside, batch), Category::kInput);
  BlockLife other = batch;
  other.is_before_calls = false;
  EXPECT_EQ(why_of(outside, other), WhyUnknown::kOutside) << "a loss";
  other = batch, other.is_made_again = false;
  EXPECT_EQ(why_of(outside, other), WhyUnknown::kOutside) << "made once";
  other = batch, other.steps = 1;
  EXPECT_EQ(why_of(outside, other), WhyUnknown::kOutside) << "perhaps left from the step before";
  other = batch, other.is_freed = false;
  EXPECT_EQ(why_of(outside, other), WhyUnknown::kOutside);
}

TEST(CategoryRules, EveryReasonHasASentence) {
  EXPECT_STREQ(why_unknown_text(WhyUnknown::kNone), "");
  for (size_t why = 1; why < kWhyUnknown; ++why) {
    EXPECT_GT(strlen(why_unknown_text(static_cast<WhyUnknown>(why))), 20u);
  }
}

}  // namespace
}  // namespace gpumemprof

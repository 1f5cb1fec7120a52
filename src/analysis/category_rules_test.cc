// What a block is, by what is known of its life: one test a rule.
#include "analysis/category_rules.h"

#include <gtest/gtest.h>

#include "trace/event.h"

namespace gpumemprof {
namespace {

Attribution made_in(WorkPhase phase) {
  Attribution work;
  work.phase = phase;
  return work;
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

TEST(CategoryRules, ARoleThatIsNotKnownSaysNothing) {
  EXPECT_EQ(category_of(made_in(WorkPhase::kDataLoading), {.role = 77}), Category::kInput);
}

TEST(CategoryRules, WhatAutogradSavesOfAModuleIsAnActivation) {
  EXPECT_EQ(category_of(made_in(WorkPhase::kForward), {.is_saved = true}), Category::kActivation);
}

TEST(CategoryRules, WhatAutogradSavesOfTheDataIsInput) {
  const Attribution outside = made_in(WorkPhase::kNone);
  EXPECT_EQ(category_of(outside, {.is_saved = true, .calls = 1}), Category::kInput);
  // A view of data has what autograd keeps of a tensor, as a result has.
  EXPECT_EQ(category_of(outside, {.is_saved = true, .has_history = true, .calls = 1}),
            Category::kInput);
}

TEST(CategoryRules, WhatIsMadeOfAModulesResultOutsideOfItIsAnActivation) {
  const Attribution outside = made_in(WorkPhase::kNone);
  EXPECT_EQ(category_of(outside, {.is_saved = true, .has_history = true}), Category::kActivation);
  EXPECT_EQ(category_of(outside, {.is_saved = true, .is_output = true}), Category::kActivation);
}

TEST(CategoryRules, WhatEveryStepSavesAgainIsAParameterThatNobodyNamed) {
  const BlockLife life{.is_saved = true, .has_history = true, .steps_saved_in = 3, .calls = 3};
  EXPECT_EQ(category_of(made_in(WorkPhase::kNone), life), Category::kParameter);
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
  EXPECT_EQ(category_of(forward, {.steps = 2}), Category::kFrameworkOther) << "made once";
  EXPECT_EQ(category_of(forward, {.steps = 1, .is_made_again = true}), Category::kTemporary);
}

TEST(CategoryRules, WhatGrowsFromCallToCallWithoutGradientsIsACache) {
  const Attribution evaluation = made_in(WorkPhase::kEvaluation);
  EXPECT_EQ(category_of(evaluation, {.calls = 1, .site_grows = true}), Category::kKvCache);
  EXPECT_EQ(category_of(evaluation, {.calls = 1}), Category::kTemporary) << "the last result";
  EXPECT_EQ(category_of(evaluation, {.calls = 2}), Category::kKvCache);
  EXPECT_EQ(category_of(evaluation, {}), Category::kTemporary);
}

TEST(CategoryRules, WhatNoModelUsedAndNobodyFreedIsUnknown) {
  EXPECT_EQ(category_of(made_in(WorkPhase::kNone), {}), Category::kUnknown);
  EXPECT_EQ(category_of(made_in(WorkPhase::kNone), {.is_freed = true}), Category::kTemporary);
}

}  // namespace
}  // namespace gpumemprof

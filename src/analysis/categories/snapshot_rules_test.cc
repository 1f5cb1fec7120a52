// What a block of a snapshot is, by what is known of its life: one test a rule.
#include "analysis/categories/snapshot_rules.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "analysis/categories/torch_frames.h"

namespace gpumemprof {
namespace {

using enum SnapshotRule;

SnapshotWork python(WorkPhase phase) {
  SnapshotWork work;
  work.phase = phase, work.has_python = true;
  return work;
}
SnapshotRule rule(WorkPhase phase, SnapshotLife life) {
  return rule_of(python(phase), phase, life);
}

TEST(SnapshotRules, EachHasANameOfItsOwnAndAllButOneACategory) {
  std::set<std::string> names;
  for (size_t i = 0; i < kSnapshotRules; ++i) {
    const RuleFacts& facts = facts_of(static_cast<SnapshotRule>(i));
    EXPECT_TRUE(names.insert(facts.name).second) << facts.name;
    EXPECT_EQ(facts.category == Category::kUnknown, i == 0) << facts.name;
    EXPECT_EQ(facts.confidence == Confidence::kNone, i == 0) << facts.name;
  }
  EXPECT_STREQ(facts_of(kEarlierFreedInOptimizer).name, "earlier_freed_in_optimizer");
}

TEST(SnapshotRules, WhatAnOptimizerLeavesIsItsState) {
  EXPECT_EQ(rule(WorkPhase::kOptimizer, {.outlived_optimizer = true}), kOptimizerKept);
  EXPECT_EQ(rule(WorkPhase::kOptimizer, {.is_freed = true}), kOptimizerFreed);
  EXPECT_EQ(rule(WorkPhase::kOptimizer, {}), kNoRule) << "the step is not over";
}

TEST(SnapshotRules, WhatBackwardLeavesIsAGradientUnlessBackwardFreesIt) {
  EXPECT_EQ(rule(WorkPhase::kBackward, {.outlived_backward = true}), kBackwardKept);
  EXPECT_EQ(rule(WorkPhase::kBackward,
                 {.is_freed = true, .is_freed_in_backward = true, .outlived_backward = true}),
            kBackwardFreed);
  EXPECT_EQ(rule(WorkPhase::kBackward, {}), kNoRule) << "the backward is not over";
  SnapshotWork accumulated = python(WorkPhase::kBackward);
  accumulated.is_accumulated = true;
  EXPECT_EQ(rule_of(accumulated, WorkPhase::kBackward, {}), kAccumulated);
}

TEST(SnapshotRules, WhatDataParallelCopiesToADeviceIsParametersAndInputOfOneCall) {
  SnapshotWork work = python(WorkPhase::kForward);
  work.is_replica = true;
  const auto of = [&](SnapshotLife life) { return rule_of(work, WorkPhase::kForward, life); };
  EXPECT_EQ(of({.is_freed = true, .is_freed_in_backward = true, .trace_has_backward = true}),
            kReplica);
  EXPECT_EQ(of({}), kReplica);
  EXPECT_EQ(of({.is_freed = true, .met_oom = true, .trace_has_backward = true}), kReplica);
  EXPECT_EQ(of({.is_freed = true, .trace_has_backward = true}), kForwardFreed)
      << "packed for the way";
  EXPECT_EQ(of({.has_history = false}), kReplica);
  work.is_replica = false, work.is_scattered = true;
  EXPECT_EQ(of({.is_freed = true, .is_freed_in_backward = true}), kScattered);
  EXPECT_EQ(of({.has_history = false}), kScattered);
}

TEST(SnapshotRules, AThreadWithoutPythonIsLessSure) {
  const SnapshotLife kept{.outlived_backward = true, .is_unseen = true};
  const SnapshotRule found = rule_of({}, WorkPhase::kBackward, kept);
  EXPECT_EQ(found, kBackwardKeptUnseen);
  EXPECT_EQ(facts_of(found).confidence, Confidence::kMedium);
}

TEST(SnapshotRules, ForwardsMemoryIsAnActivationWhereBackwardFreesIt) {
  EXPECT_EQ(rule(WorkPhase::kForward, {.is_freed = true, .is_freed_in_backward = true}),
            kForwardFreedInBackward);
  EXPECT_EQ(rule(WorkPhase::kForward, {.met_backward = true}), kForwardMetBackward);
  EXPECT_EQ(rule(WorkPhase::kForward, {.is_freed = true, .trace_has_backward = true}),
            kForwardFreed);
  EXPECT_EQ(rule(WorkPhase::kForward, {.steps = 2, .met_backward = true}), kForwardLasts);
}

TEST(SnapshotRules, AForwardThatIsNotOverGoesByTheOneBefore) {
  EXPECT_EQ(rule(WorkPhase::kForward, {.trace_has_backward = true}), kNoRule);
  EXPECT_EQ(
      rule(WorkPhase::kForward, {.trace_has_backward = true, .before = Category::kActivation}),
      kActivationAsBefore);
  EXPECT_EQ(rule(WorkPhase::kForward, {.trace_has_backward = true, .before = Category::kTemporary}),
            kTemporaryAsBefore);
}

TEST(SnapshotRules, WithoutABackwardForwardIsMadeOfTemporariesCachesAndGuesses) {
  EXPECT_EQ(rule(WorkPhase::kForward, {.is_freed = true}), kForwardFreedOnly);
  EXPECT_EQ(rule(WorkPhase::kForward, {.calls = 1, .site_rises = 7}), kCacheLikely);
  EXPECT_EQ(rule(WorkPhase::kForward, {.is_freed = true, .site_rises = 7}), kForwardFreedOnly);
  const SnapshotLife last{.is_freed = true, .site_rises = 7, .before = Category::kKvCache};
  EXPECT_EQ(rule(WorkPhase::kForward, last), kCacheLikely) << "the last call's";
  EXPECT_EQ(rule(WorkPhase::kForward, {.calls = 1, .site_rises = 8}), kCacheGrown);
  EXPECT_EQ(rule(WorkPhase::kForward, {.calls = 1}), kForwardKeptOnly);
  EXPECT_EQ(facts_of(kForwardKeptOnly).confidence, Confidence::kLow);
  SnapshotWork generating = python(WorkPhase::kForward);
  generating.is_without_gradients = true;
  EXPECT_EQ(rule_of(generating, WorkPhase::kForward, {.calls = 1, .site_rises = 7}), kCache);
}

TEST(SnapshotRules, OutsideOfModulesItIsDataOrAResultOrATemporary) {
  EXPECT_EQ(rule(WorkPhase::kNone, {.calls = 1}), kOutsideInput);
  EXPECT_EQ(rule(WorkPhase::kNone, {.calls = 3}), kNoRule) << "no data of one step";
  EXPECT_EQ(rule(WorkPhase::kNone, {.calls = 9, .trace_has_backward = true}), kOutsideInput);
  EXPECT_EQ(rule(WorkPhase::kNone, {.calls = 9, .steps = 2, .trace_has_backward = true}), kNoRule);
  EXPECT_EQ(rule(WorkPhase::kNone, {.is_freed = true}), kOutsideFreed);
  EXPECT_EQ(rule(WorkPhase::kNone, {.met_backward_before_call = true, .is_after_call = true}),
            kResultMetBackward);
  EXPECT_EQ(
      rule(WorkPhase::kNone,
           {.is_freed = true, .is_freed_in_backward = true, .met_backward_before_call = true}),
      kResultFreedInBackward);
}

TEST(SnapshotRules, WhatPyTorchSetsUpIsAParameterOnceItIsInItsPlace) {
  SnapshotWork setup = python(WorkPhase::kNone);
  setup.is_in_setup = true;
  EXPECT_EQ(rule_of(setup, WorkPhase::kNone, {}), kSetUp);
  EXPECT_EQ(rule_of(setup, WorkPhase::kNone, {.is_freed = true, .calls = 4}), kSetUp);
  EXPECT_EQ(rule_of(setup, WorkPhase::kNone, {.is_freed = true, .is_freed_in_setup = true}),
            kOutsideFreed);
}

TEST(SnapshotRules, WhatWasThereBeforeTheTraceIsUnknownUnlessBackwardFreesIt) {
  EXPECT_EQ(rule_of({}, WorkPhase::kNone, {.was_before = true, .calls = 1}), kNoRule);
  EXPECT_EQ(rule_of({}, WorkPhase::kNone,
                    {.was_before = true, .is_freed = true, .is_freed_in_backward = true}),
            kEarlierFreedInBackward);
}

TEST(SnapshotRules, WhatAStepReplacesWasItsStateAndWhatZeroGradFreesAGradient) {
  EXPECT_EQ(rule_of({}, WorkPhase::kNone,
                    {.was_before = true, .is_freed = true, .is_freed_in_optimizer = true}),
            kEarlierFreedInOptimizer);
  EXPECT_EQ(rule_of({}, WorkPhase::kNone,
                    {.was_before = true, .is_freed = true, .is_freed_by_zero_grad = true}),
            kFreedByZeroGrad);
}

TEST(SnapshotRules, WhatAFailureFreesIsNoTemporary) {
  EXPECT_EQ(rule(WorkPhase::kForward, {.is_freed = true, .met_oom = true}), kForwardKeptOnly);
  EXPECT_EQ(
      rule(WorkPhase::kForward, {.is_freed = true, .met_oom = true, .trace_has_backward = true}),
      kNoRule);
}

TEST(SnapshotRules, AWorkspaceIsOneByItsFramesOrWithoutNativeOnesByItsSize) {
  SnapshotWork frames = python(WorkPhase::kForward);
  frames.has_native = frames.is_workspace = true;
  EXPECT_EQ(rule_of(frames, WorkPhase::kForward, {.is_freed = true}), kWorkspaceFrames);
  SnapshotLife kept{.size_bytes = kCublasWorkspaceBytes};
  EXPECT_EQ(rule(WorkPhase::kForward, kept), kWorkspaceSize);
  frames.is_workspace = false;
  EXPECT_EQ(rule_of(frames, WorkPhase::kForward, kept), kForwardKeptOnly);
  kept.is_freed = true;
  EXPECT_EQ(rule(WorkPhase::kForward, kept), kForwardFreedOnly);
}

TEST(SnapshotRules, WithoutHistoryOnlyWhatTheStackAloneTellsIsKnown) {
  SnapshotWork setup = python(WorkPhase::kNone);
  setup.is_in_setup = true;
  EXPECT_EQ(rule_of(setup, WorkPhase::kNone, {.has_history = false, .was_before = true}), kSetUp);
  EXPECT_EQ(rule(WorkPhase::kForward, {.has_history = false, .was_before = true}), kNoRule);
  EXPECT_EQ(rule(WorkPhase::kOptimizer, {.has_history = false, .was_before = true}), kNoRule);
}

}  // namespace
}  // namespace gpumemprof

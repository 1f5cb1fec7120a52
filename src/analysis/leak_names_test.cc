#include "analysis/leak_names.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

std::string name(const LeakEvidence& evidence) { return name_leak(evidence).name; }

std::string held_by(TensorHolder holder, LeakEvidence evidence = {}) {
  evidence.holder = &holder;
  return name(evidence);
}

TEST(LeakNames, OwnersThatAreABugByThemselves) {
  EXPECT_EQ(held_by({.owner = "exception"}), "exception_traceback");
  EXPECT_EQ(held_by({.owner = "cache"}), "lru_cache_on_tensors");
  EXPECT_EQ(held_by({.owner = "optimizer"}), "optimizer_recreated");
  EXPECT_EQ(held_by({.owner = "nothing"}), "graph_cycle");
  EXPECT_EQ(held_by({.owner = "hook"}), "hook_stores");
  EXPECT_EQ(held_by({.owner = "module attribute"}), "tensors_on_model");
}

TEST(LeakNames, WhatAChildProcessKeepsIsTheWorkersUnlessItIsABugByItself) {
  EXPECT_EQ(held_by({.owner = "attribute"}, {.in_child = true, .in_module = true}),
            "worker_growth");
  EXPECT_EQ(name({.in_child = true}), "worker_growth");
  EXPECT_EQ(held_by({.owner = "cache"}, {.in_child = true}), "lru_cache_on_tensors");
  EXPECT_EQ(held_by({.owner = "variable", .tensors = 9, .with_graph = 9, .scalars = 9},
                    {.in_child = true}),
            "loss_kept_with_graph");
}

TEST(LeakNames, SingleNumbersWithAGraphAreLossesUnlessTheyWerePredicted) {
  TensorHolder losses{.owner = "variable",
                      .through = {"list"},
                      .tensors = 40,
                      .with_graph = 40,
                      .scalars = 40,
                      .operations = {"MeanBackward0", "AddmmBackward0"}};
  EXPECT_EQ(held_by(losses), "loss_kept_with_graph");
  losses.operations.push_back("SoftmaxBackward0");
  EXPECT_EQ(held_by(losses), "evaluation_without_no_grad");
}

TEST(LeakNames, OutputsInAContainerAreAnEvaluationOneTensorAloneIsAState) {
  EXPECT_EQ(held_by({.owner = "variable", .through = {"list"}, .tensors = 40, .with_graph = 40}),
            "evaluation_without_no_grad");
  EXPECT_EQ(held_by({.owner = "variable", .tensors = 1, .with_graph = 1}),
            "hidden_state_not_detached");
}

TEST(LeakNames, WithoutAGraphTheShapeOfWhatIsKeptTells) {
  EXPECT_EQ(held_by({.owner = "variable", .tensors = 1}, {.grows_one_block = true}),
            "kv_cache_growth");
  EXPECT_EQ(
      held_by({.owner = "variable", .through = {"dict", "tuple"}, .tensors = 80, .in_pairs = 80},
              {.in_module = true}),
      "kv_cache_growth");
  EXPECT_EQ(held_by({.owner = "variable", .through = {"list"}, .tensors = 80}, {.in_module = true}),
            "activations_kept");
}

TEST(LeakNames, WhatNothingHoldsIsACycleUnlessOneBlockTakesTheOthersPlace) {
  EXPECT_EQ(held_by({.owner = "nothing", .tensors = 9}, {.whole_graph = true}), "graph_cycle");
  EXPECT_EQ(held_by({.owner = "nothing", .tensors = 1}, {.grows_one_block = true}),
            "kv_cache_growth");
}

TEST(LeakNames, WithoutAHolderWhatItWasMadeByTells) {
  EXPECT_EQ(name({.in_optimizer = true}), "optimizer_recreated");
  EXPECT_EQ(name({.in_backward = true, .whole_graph = true}), "graph_cycle");
  EXPECT_EQ(name({.in_backward = true}), "hook_stores");
  EXPECT_EQ(name({.in_module = true}), "activations_kept");
  EXPECT_EQ(name({}), "growth");
}

TEST(LeakNames, EveryNameHasAFix) {
  for (const LeakEvidence& evidence :
       {LeakEvidence{}, LeakEvidence{.in_child = true}, LeakEvidence{.in_module = true}}) {
    EXPECT_FALSE(std::string(name_leak(evidence).fix).empty());
    EXPECT_FALSE(std::string(name_leak(evidence).title).empty());
  }
}

}  // namespace
}  // namespace gpumemprof

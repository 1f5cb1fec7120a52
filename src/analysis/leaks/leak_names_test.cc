#include "analysis/leaks/leak_names.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpumemprof {
namespace {

std::string name(const LeakEvidence& evidence) { return name_leak(evidence).name; }

std::string held_by(TensorHolder holder, LeakEvidence evidence = {}) {
  evidence.holder = &holder;
  return name(evidence);
}

LeakEvidence holding(HolderStacks::Held held, LeakEvidence evidence = {}) {
  static_cast<HolderStacks::Held&>(evidence) = held;
  return evidence;
}

TEST(LeakNames, OwnersThatAreABugByThemselves) {
  EXPECT_EQ(held_by({.owner = "exception"}), "exception_traceback");
  EXPECT_EQ(held_by({.owner = "cache"}), "lru_cache_on_tensors");
  EXPECT_EQ(held_by({.owner = "optimizer"}), "optimizer_recreated");
  EXPECT_EQ(held_by({.owner = "hook"}), "hook_stores");
  EXPECT_EQ(held_by({.owner = "module attribute"}), "tensors_on_model");
  EXPECT_EQ(held_by({.owner = "metric"}), "metric_not_reset");
  EXPECT_EQ(held_by({.owner = "link"}, {.in_optimizer = true, .with_models = true}),
            "chain_of_objects");
}

TEST(LeakNames, StatesOfOptimizersThatAreGoneAreNoOptimizers) {
  const auto fix_of = [](const char* owner, std::vector<std::string> through) {
    const TensorHolder holder{.owner = owner, .through = std::move(through), .tensors = 9};
    return std::string(name_leak(holding({.holder = &holder}, {.in_optimizer = true})).fix);
  };
  EXPECT_TRUE(fix_of("variable", {"dict", "dict", "dict"}).starts_with("keep the last state"));
  EXPECT_TRUE(fix_of("optimizer", {"list", "defaultdict", "dict"}).starts_with("create one"));
  EXPECT_TRUE(fix_of("variable", {}).starts_with("create one"));
}

TEST(LeakNames, GraphsThatTensorFlowTracesAnewAreTheCauseWhoeverHoldsThem) {
  EXPECT_EQ(name({.is_of_kernels = true}), "kernels_kept");
  EXPECT_EQ(name({.in_tracing = true}), "function_retraced");
  EXPECT_STREQ(name_leak({.in_tracing = true}).fix,
               "make a model or a tf.function once, not in the loop; pass tensors instead of Python "
               "numbers, and tensors of one shape, or set reduce_retracing=True");
}

TEST(LeakNames, WhatIsKeptAfterTheLastStepMayBeAResultWhereItHasNoGraph) {
  const auto is_result = [](LeakEvidence evidence, const TensorHolder* holder = nullptr) {
    evidence.holder = holder;
    return may_be_result(name_leak(evidence), evidence);
  };
  const TensorHolder plain{.owner = "variable", .tensors = 9, .storages = 9};
  const TensorHolder graphs{
      .owner = "variable", .tensors = 9, .with_graph = 9, .storages = 27};
  const TensorHolder hook{.owner = "hook", .tensors = 9};
  EXPECT_TRUE(is_result({.in_module = true}, &plain));
  EXPECT_TRUE(is_result({.in_module = true, .without_graph = true}));
  EXPECT_TRUE(is_result({}));
  EXPECT_FALSE(is_result({.in_module = true}, &graphs));
  EXPECT_FALSE(is_result({.in_module = true})) << "made with a graph, and nobody knows the holder";
  EXPECT_FALSE(is_result({.in_module = true}, &hook));
}

TEST(LeakNames, WhereTheHolderIsKnownNobodyIsToldToLookForIt) {
  const TensorHolder holder{.owner = "variable", .through = {"list"}, .tensors = 9};
  const LeakEvidence held = holding({.holder = &holder});
  EXPECT_EQ(name(held), name({}));
  EXPECT_STREQ(name_leak(held).fix, "remove old entries, or cap how many are kept, if nothing does yet");
  EXPECT_STREQ(name_leak(held).title, "more is stored than removed during this recording")
      << "a list may have a cap that it has not reached";
  EXPECT_STREQ(name_leak({}).fix, "find what keeps them, and drop or limit it");
}

TEST(LeakNames, ADequeWithAMaxlenFillsUntilItHasBeenFull) {
  const TensorHolder deque{.owner = "variable", .through = {"deque", "tuple"}, .tensors = 59,
                           .entries = 60, .most_entries = 60};
  EXPECT_EQ(held_by(deque), "fills_to_limit");
  EXPECT_EQ(held_by(deque, holding({.was_full = true})), kGrowth) << "its entries grow";
  EXPECT_EQ(held_by({.owner = "variable", .through = {"deque"}, .tensors = 9}), kGrowth);
  EXPECT_EQ(held_by({.owner = "hook", .tensors = 9, .entries = 9, .most_entries = 60}),
            "fills_to_limit");
  EXPECT_EQ(held_by({.owner = "variable", .tensors = 9, .with_graph = 9, .scalars = 9, .entries = 9,
                     .most_entries = 60}),
            "loss_kept_with_graph");
  const TensorHolder list{.owner = "attribute", .through = {"list"}, .tensors = 59, .entries = 60,
                          .most_entries = 100, .limit = "ListStorage.max_size"};
  LeakEvidence evidence;
  evidence.holder = &list;
  EXPECT_STREQ(name_leak(evidence).title, "it fills up to the limit that its owner has");
}

TEST(LeakNames, WhatAChildProcessKeepsIsTheWorkersUnlessItIsABugByItself) {
  EXPECT_EQ(held_by({.owner = "attribute"}, {.in_child = true, .in_module = true}),
            "worker_growth");
  EXPECT_EQ(name({.in_child = true}), "worker_growth");
  EXPECT_EQ(held_by({.owner = "attribute"}, {.in_child = true, .is_training = true}), kGrowth)
      << "a rank";
  EXPECT_EQ(held_by({.owner = "cache"}, {.in_child = true}), "lru_cache_on_tensors");
  EXPECT_EQ(held_by({.owner = "variable", .tensors = 9, .with_graph = 9, .scalars = 9},
                    {.in_child = true}),
            "loss_kept_with_graph");
}

TEST(LeakNames, TensorsBesideLossesWhoseBackwardPassRanAreWhatGrows) {
  // 240 losses and as many activations without a graph; the graphs saved nothing but parameters.
  const TensorHolder metrics{.owner = "attribute", .tensors = 480, .with_graph = 240,
                             .scalars = 240, .storages = 484};
  const LeakEvidence kept =
      holding({.held_blocks = 240, .held_bytes = 240 << 19}, {.in_module = true});
  EXPECT_EQ(held_by(metrics, kept), "activations_kept");
  EXPECT_EQ(held_by(metrics, holding({.held_blocks = 240, .held_bytes = 240 * 4},
                                     {.in_module = true})),
            "loss_kept_with_graph")
      << "the losses";
  TensorHolder whole = metrics;
  whole.storages = 480 + 240;
  EXPECT_EQ(held_by(whole, kept), "loss_kept_with_graph") << "no backward pass ran";
}

TEST(LeakNames, BatchesBesideLossesAreNamedAsBatchesAlone) {
  // history.append((x, loss)) in 39 steps: x has 512 KiB and no graph, so .detach() frees nothing.
  const TensorHolder history{.owner = "variable", .through = {"list", "tuple"}, .tensors = 78,
                             .with_graph = 39, .scalars = 39, .in_pairs = 78, .storages = 78};
  const LeakEvidence batches = holding(
      {.holder = &history, .held_blocks = 39, .held_bytes = 39 << 19}, {.is_training = true});
  EXPECT_EQ(name(batches), kGrowth);
  EXPECT_STREQ(name_leak(batches).fix, "remove old entries, or cap how many are kept, if nothing does yet");
  const LeakEvidence losses = holding(
      {.holder = &history, .held_blocks = 39, .held_bytes = 39 * 4}, {.is_training = true});
  EXPECT_EQ(name(losses), "loss_kept_with_graph");
}

TEST(LeakNames, SingleNumbersWithAGraphAreLossesUnlessTheyWerePredicted) {
  TensorHolder losses{.owner = "variable",
                      .through = {"list"},
                      .tensors = 40,
                      .with_graph = 40,
                      .scalars = 40,
                      .storages = 160,
                      .operations = {"MeanBackward0", "AddmmBackward0"}};
  EXPECT_EQ(held_by(losses), "loss_kept_with_graph");
  losses.operations.push_back("SoftmaxBackward0");
  EXPECT_EQ(held_by(losses), "outputs_kept_with_graph");
}

TEST(LeakNames, OutputsAreAnEvaluationWhileWhatTheirGraphSavedIsThere) {
  TensorHolder outputs{.owner = "variable", .through = {"list"}, .tensors = 40, .with_graph = 40};
  outputs.storages = 120;  // an input and a hidden layer each
  EXPECT_EQ(held_by(outputs), "outputs_kept_with_graph");
  outputs.storages = 41;  // a backward pass has freed what was saved
  EXPECT_EQ(held_by(outputs), "activations_kept");
  outputs.scalars = 40;
  outputs.operations = {"MeanBackward0",
                        "SoftmaxBackward0"};  // attention in a model that is trained
  EXPECT_EQ(held_by(outputs), "loss_kept_with_graph");
}

TEST(LeakNames, AFewTensorsWithManyBlocksInTheirGraphAreAStateWhateverIsAroundThem) {
  const TensorHolder one{.owner = "variable", .tensors = 1, .with_graph = 1, .storages = 40};
  EXPECT_EQ(held_by(one), "hidden_state_not_detached");
  TensorHolder pair{.owner = "variable", .through = {"tuple"}, .tensors = 2, .with_graph = 2};
  pair.in_pairs = 2, pair.storages = 80;
  EXPECT_EQ(held_by(pair), "hidden_state_not_detached");
  EXPECT_STREQ(name_leak(holding({.holder = &pair}, {.trains_in_steps = true})).fix,
               "detach the state at the end of every step or every few steps: state = "
               "state.detach(), or for a tuple state = tuple(s.detach() for s in state)");
  pair.owner = "module attribute";
  EXPECT_EQ(held_by(pair), "hidden_state_not_detached");
  pair.storages = 4;
  EXPECT_EQ(held_by(pair), "tensors_on_model");
}

TEST(LeakNames, ANumberThatAModuleCarriesOnIsAStateAndOneInAVariableASumOfLosses) {
  TensorHolder one{.owner = "module attribute", .tensors = 1, .with_graph = 1, .scalars = 1};
  one.storages = 306;
  EXPECT_EQ(held_by(one), "hidden_state_not_detached");
  one.owner = "variable";
  EXPECT_EQ(held_by(one), "loss_kept_with_graph");
  TensorHolder many{.owner = "module attribute", .tensors = 40, .with_graph = 40, .scalars = 40};
  many.storages = 306;
  EXPECT_EQ(held_by(many), "tensors_on_model");
}

TEST(LeakNames, WhatIsReplacedByALargerOneIsNoState) {
  const TensorHolder output{.owner = "variable", .tensors = 1, .with_graph = 1, .storages = 40};
  EXPECT_EQ(held_by(output, {.grows_one_block = true, .is_training = true, .sizes_rise = true}),
            "sizes_rise");
  EXPECT_EQ(held_by(output, {.grows_one_block = true, .is_training = true}), "growth");
  EXPECT_EQ(held_by(output, {.grows_one_block = true}), "kv_cache_growth");
  EXPECT_EQ(held_by({.owner = "module attribute", .tensors = 1},
                    {.grows_one_block = true, .is_training = true, .sizes_rise = true}),
            "sizes_rise");
  EXPECT_EQ(held_by(output, {.is_training = true, .sizes_rise = true}),
            "hidden_state_not_detached");
}

TEST(LeakNames, AHistoryOnTheCpuWithoutAGraphIsNotDetachedOrMoved) {
  const TensorHolder history{.owner = "variable", .tensors = 1, .storages = 1};
  const TensorHolder graph{.owner = "variable", .tensors = 1, .with_graph = 1, .storages = 1};
  const auto fix = [](const TensorHolder* holder, bool on_host) {
    return std::string(name_leak(holding({.holder = holder}, {.grows_one_block = true,
                                                              .is_training = true,
                                                              .on_host = on_host}))
                           .fix);
  };
  EXPECT_EQ(fix(&history, true), "cap its length");
  const std::string any = "cap its length, or store .item() or .detach().cpu() of it";
  EXPECT_EQ(fix(&history, false), any) << "on a GPU";
  EXPECT_EQ(fix(&graph, true), any);
  EXPECT_EQ(fix(nullptr, true), any) << "nobody knows whether it has a graph";
}

TEST(LeakNames, WithoutAGraphTheShapeOfWhatIsKeptTells) {
  EXPECT_EQ(held_by({.owner = "variable", .tensors = 1}, {.grows_one_block = true}),
            "kv_cache_growth");
  EXPECT_EQ(
      held_by({.owner = "variable", .through = {"dict", "tuple"}, .tensors = 80, .in_pairs = 80},
              {.in_module = true}),
      "kv_cache_growth");
  const TensorHolder pairs{
      .owner = "variable", .through = {"list", "tuple"}, .tensors = 80, .in_pairs = 80};
  EXPECT_EQ(held_by(pairs, {.in_module = true, .is_training = true}), "activations_kept");
  EXPECT_EQ(held_by(pairs, {}), "growth") << "(x, y) of a data set";
  EXPECT_EQ(held_by({.owner = "variable", .through = {"list"}, .tensors = 80}, {.in_module = true}),
            "activations_kept");
}

TEST(LeakNames, WhatNothingHoldsIsACycleUnlessOneBlockTakesTheOthersPlace) {
  EXPECT_EQ(held_by({.owner = "nothing", .tensors = 9}, {.has_create_graph = true}), "graph_cycle");
  EXPECT_EQ(held_by({.owner = "nothing", .tensors = 1}, {.grows_one_block = true}),
            "kv_cache_growth");
}

TEST(LeakNames, WhatNothingHoldsIsBlamedOnCreateGraphOnlyWhereItRan) {
  const TensorHolder plain{.owner = "nothing", .tensors = 9};
  const TensorHolder graphs{.owner = "nothing", .tensors = 9, .with_graph = 9};
  const auto title = [](const TensorHolder& holder, LeakEvidence evidence = {}) {
    evidence.holder = &holder;
    return std::string_view(name_leak(evidence).title);
  };
  const LeakEvidence created{.has_create_graph = true};
  const LeakEvidence no_collector = holding({.is_gc_disabled = true});
  EXPECT_EQ(title(graphs, created),
            "gradients made with create_graph form a cycle with their graph");
  EXPECT_EQ(title(graphs), "no name holds them: most often a tensor is kept by its own graph");
  EXPECT_EQ(title(plain), "no name holds them: a reference cycle does, or native code");
  EXPECT_EQ(title(plain, no_collector),
            "no name holds them, and Python's garbage collector, which frees reference cycles, is "
            "disabled");
  EXPECT_EQ(held_by(plain), kGrowth);
  EXPECT_EQ(held_by(plain, no_collector), "reference_cycle");
  EXPECT_EQ(held_by(plain, {.makes_models = true, .has_create_graph = true}), "graph_cycle")
      << "the parameters of one model and its gradients are one bug";
}

TEST(LeakNames, LeavesOfAGraphAreNotWhatABackwardPassFrees) {
  // As many residuals as losses, and an input with its gradient for each pair.
  TensorHolder log{.owner = "variable", .tensors = 80, .with_graph = 80, .scalars = 40};
  log.storages = 160, log.leaves = 80;
  EXPECT_EQ(held_by(log), "activations_kept") << "80 blocks of 80 tensors: nothing saved is left";
  log.leaves = 40;
  EXPECT_EQ(held_by(log), "outputs_kept_with_graph") << "120 of 80";
}

TEST(LeakNames, AGraphThatTrainingNeedsIsDetachedNotSwitchedOff) {
  const TensorHolder whole{.owner = "variable", .tensors = 40, .with_graph = 40, .storages = 120};
  const LeakEvidence trains{.is_training = true, .trains_in_steps = true};
  EXPECT_STREQ(name_leak(holding({.holder = &whole}, trains)).fix,
               "keep .item() or .detach() of the outputs; an evaluation can run under torch.no_grad() or "
               "torch.inference_mode()");
  const TensorHolder half{.owner = "variable", .tensors = 40, .with_graph = 40, .storages = 50};
  EXPECT_STREQ(name_leak(holding({.holder = &half}, trains)).fix,
               "keep .item() or .detach() of the part that is needed, and remove old entries");
  // Detached they would keep 40 of the 41 blocks.
  const TensorHolder spent{.owner = "variable", .tensors = 40, .with_graph = 40, .storages = 41};
  EXPECT_STREQ(name_leak(holding({.holder = &spent}, trains)).fix,
               "remove old entries, or keep numbers (.item()) or a copy of the part that is needed");
  const LeakEvidence trained_before{.is_training = true};
  EXPECT_TRUE(std::string_view(name_leak(holding({.holder = &whole}, trained_before)).fix)
                  .starts_with("run the loop under torch.no_grad()"));
}

TEST(LeakNames, PartsOfAGraphThatLieSideBySideAreNoState) {
  TensorHolder one{.owner = "variable", .tensors = 1, .with_graph = 1, .storages = 40};
  const auto fix = [&](bool trains) {
    return std::string(name_leak(holding({.holder = &one}, {.trains_in_steps = trains})).fix);
  };
  EXPECT_TRUE(fix(true).starts_with("detach the state")) << fix(true);
  EXPECT_TRUE(fix(false).starts_with("run the loop under torch.no_grad()")) << fix(false);
  EXPECT_TRUE(fix(false).ends_with("for s in state)")) << fix(false);
  one.side_by_side = true;
  EXPECT_EQ(held_by(one), "outputs_kept_with_graph");
}

TEST(LeakNames, WithoutAHolderWhatItWasMadeByTells) {
  EXPECT_EQ(name({.in_optimizer = true}), "optimizer_recreated");
  EXPECT_EQ(name({.in_backward = true, .whole_graph = true}), "graph_cycle");
  EXPECT_EQ(name({.in_backward = true}), kGrowth) << "no hook was seen";
  EXPECT_EQ(name({.in_module = true}), "activations_kept");
  EXPECT_EQ(name({}), "growth");
}

TEST(LeakNames, TheHistoryOfOneLbfgsIsNoSecondOptimizer) {
  const LeakEvidence lbfgs{.in_optimizer = true, .in_lbfgs = true};
  EXPECT_EQ(held_by({.owner = "optimizer"}, lbfgs), "fills_to_limit");
  EXPECT_EQ(name_leak(lbfgs).kind, FindingKind::kFillsToLimit);
}

TEST(LeakNames, FirstGradientsEndWithTheLastParameterUnlessModelsAreMadeAnew) {
  EXPECT_EQ(held_by({.owner = "variable"}, {.in_backward = true, .are_first_gradients = true}),
            "fills_to_limit");
  EXPECT_EQ(name({.in_backward = true, .with_models = true, .are_first_gradients = true}),
            "models_kept");
}

TEST(LeakNames, ModelsThatAreKeptAreNamedWithTheirGradientsAndOptimizers) {
  EXPECT_EQ(held_by({.owner = "variable"}, {.in_module = true, .makes_models = true}), "models_kept");
  EXPECT_EQ(name({.in_optimizer = true, .with_models = true}), "models_kept");
  EXPECT_EQ(name({.in_backward = true, .with_models = true}), "models_kept");
  EXPECT_EQ(held_by({.owner = "hook"}, {.in_backward = true, .with_models = true}), "hook_stores");
  EXPECT_EQ(name({.in_module = true, .with_models = true}), "activations_kept");
  EXPECT_EQ(held_by({.owner = "exception"}, {.makes_models = true}), "exception_traceback");
}

TEST(LeakNames, TensorsOfNoModuleThatAreKeptBesideAGraphAreNoActivations) {
  const TensorHolder pairs{.owner = "variable", .tensors = 80, .with_graph = 40, .storages = 81};
  EXPECT_EQ(held_by(pairs), "activations_kept");
  EXPECT_STREQ(name_leak(holding({.holder = &pairs})).title, "tensors of every step are kept");
  EXPECT_STREQ(name_leak(holding({.holder = &pairs}, {.in_module = true})).title,
               "activations of every step are kept");
}

TEST(LeakNames, WhatNoModuleMadeOnTheLineThatRunsOneAreNoActivations) {
  const TensorHolder list{.owner = "variable", .tensors = 40, .storages = 40};
  const auto title = [&](const LeakEvidence& e) { return std::string(name_leak(e).title); };
  EXPECT_EQ(title(holding({.holder = &list}, {.in_module = true})), "tensors of every step are kept");
  EXPECT_EQ(title(holding({.holder = &list}, {.in_module = true, .is_saved = true})),
            "tensors of every step are kept")
      << "an input of the module is of the same line";
  EXPECT_EQ(title(holding({.holder = &list}, {.in_module = true, .made_in_module = true})),
            "activations of every step are kept");
  EXPECT_EQ(title({.in_module = true, .is_saved = true}), "activations of every step are kept");
}

TEST(LeakNames, GraphsThatNoBackwardPassUsesHaveOneFixWhoeverHoldsThem) {
  LeakEvidence unknown{.in_module = true, .with_graphs = true};
  const TensorHolder list{.owner = "variable", .tensors = 9, .with_graph = 9, .storages = 90};
  const LeakName& known = name_leak(holding({.holder = &list}, {.in_module = true}));
  EXPECT_STREQ(name_leak(unknown).name, known.name);
  EXPECT_TRUE(std::string_view(name_leak(unknown).fix).starts_with(known.fix));
  unknown.trains_in_steps = true;
  EXPECT_EQ(std::string_view(name_leak(unknown).fix).find("no_grad"), std::string_view::npos);
}

TEST(LeakNames, WithoutAGraphThereIsNoLossToBeStoredAsANumber) {
  EXPECT_NE(std::string_view(name_leak({.in_module = true}).fix).find("numbers (.item())"),
            std::string_view::npos);
  const LeakName& outputs = name_leak({.in_module = true, .without_graph = true});
  EXPECT_STREQ(outputs.name, "activations_kept");
  EXPECT_STREQ(outputs.fix,
               "drop each output after use, or cap how many are held, if nothing does yet");
}

TEST(LeakNames, WhatIsAKvCacheByItsCategoryIsNamedOne) {
  LeakEvidence evidence{.in_module = true, .without_graph = true, .in_cache = true};
  EXPECT_EQ(name(evidence), "kv_cache_growth");
  EXPECT_EQ(held_by({.owner = "variable", .through = {"list"}, .tensors = 80}, evidence),
            "kv_cache_growth");
}

TEST(LeakNames, WhatIsMostlyACacheMayKeepSomethingElseToo) {
  const auto is_all = [](LeakEvidence evidence, uint64_t tensors, uint64_t in_pairs) {
    const TensorHolder holder{.owner = "variable", .tensors = tensors, .in_pairs = in_pairs};
    evidence.holder = &holder;
    return is_all_kv_cache(name_leak(evidence), evidence);
  };
  EXPECT_TRUE(is_all({.in_module = true}, 80, 80));
  EXPECT_FALSE(is_all({.in_module = true}, 80, 79));
  EXPECT_FALSE(is_all({.in_module = true, .in_cache = true}, 80, 0));
  EXPECT_TRUE(is_all({.grows_one_block = true}, 1, 0));
  EXPECT_FALSE(is_all({.grows_one_block = true, .is_training = true}, 1, 0));
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

#include "analysis/pass/layer_work.h"

#include <gtest/gtest.h>

#include "analysis/compare/diff.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

const std::string kPackages = "/v/lib/python3.11/site-packages/";
const std::string kKerasLayerFile = kPackages + "keras/src/layers/layer.py";

using Frames = std::vector<std::pair<std::string, std::string>>;  // file, function; outermost first

uint32_t push(Tables* tables, const Frames& frames) {
  uint32_t stack = 0;
  for (const auto& [file, function] : frames) {
    const uint32_t line = file.starts_with('<') ? 0 : 7;
    stack = tables->stacks.push(
        stack, tables->stacks.intern_frame(
                   {tables->strings.intern(file), tables->strings.intern(function), line}));
  }
  return stack;
}

/// "layer|part"
std::string work(const Frames& frames) {
  Tables tables;
  const LayerWork found = layer_work_of(tables, push(&tables, frames));
  return std::string(found.layer) + '|' + std::string(found.part);
}

TEST(LayerWork, AWeightIsAParameterThoughItIsMadeWhenTheLayerIsCalled) {
  EXPECT_EQ(work({{"train.py", "main"},
                  {kKerasLayerFile, "Layer.__call__"},
                  {kKerasLayerFile, "Layer.add_weight"},
                  {"<layer>", "sequential/dense"}}),
            "sequential/dense|parameters");
}

TEST(LayerWork, WhatALayerThatIsCalledAllocatesIsForward) {
  EXPECT_EQ(work({{"train.py", "main"},
                  {kKerasLayerFile, "Layer.__call__"},
                  {kPackages + "torch/nn/functional.py", "relu"},
                  {"<layer>", "sequential/dense"}}),
            "sequential/dense|forward");
}

TEST(LayerWork, TheEngineOfAutogradIsGradientAndItsFunctionsAreNot) {
  EXPECT_EQ(work({{"train.py", "main"}, {kPackages + "torch/autograd/graph.py", "_engine"}}),
            "|gradient");
  EXPECT_EQ(work({{"train.py", "main"}, {kPackages + "torch/autograd/function.py", "apply"}}),
            "|unknown");
}

TEST(LayerWork, AnOptimizersScopeIsNoLayersForward) {
  EXPECT_EQ(work({{"train.py", "main"},
                  {kPackages + "keras/src/optimizers/adam.py", "build"},
                  {"<layer>", "adam"}}),
            "adam|optimizer");
}

TEST(LayerWork, ATensorflowOperationSaysItsOwnScopeWhereTheThreadSaysNone) {
  EXPECT_EQ(work({{"<tensorflow>", "StatefulPartitionedCall/sequential_1/dense_1/Relu"}}),
            "sequential_1/dense_1|forward");
  EXPECT_EQ(work({{kKerasLayerFile, "Layer.add_weight"},
                  {"<layer>", "sequential/dense"},
                  {"<tensorflow>", "Fill"}}),
            "sequential/dense|parameters");
}

TEST(LayerWork, CodeThatMadeAnOperationEarlierDidNotAllocate) {
  EXPECT_EQ(work({{kKerasLayerFile, "Layer.add_weight"},
                  {"<tensorflow>", "operation made by"},
                  {"<tensorflow>", "call/dense/MatMul"}}),
            "call/dense|forward");
}

TEST(LayerWork, WhatTensorflowKeepsForItselfIsNoLayersWhereverItIsMade) {
  EXPECT_EQ(work({{kKerasLayerFile, "Layer.add_weight"},
                  {"<layer>", "sequential/dense"},
                  {"<tensorflow internal>", "tensorflow::core::Arena"}}),
            "|framework's own");
}

TEST(LayerWork, AHandleIsItsLayersAndNoParameter) {
  EXPECT_EQ(work({{kKerasLayerFile, "Layer.add_weight"},
                  {"<layer>", "sequential/dense"},
                  {"<tensorflow>", "VarHandleOp"}}),
            "sequential/dense|variable handles");
}

TEST(LayerWork, AnOptimizersOperationThatWritesAParameterMakesTheParameterAndElseItsState) {
  EXPECT_EQ(work({{"<layer>", "adam"},
                  {"<tensorflow layer>", "sequential/dense"},
                  {"<tensorflow variable>", "sequential/dense/kernel"},
                  {"<tensorflow>", "StatefulPartitionedCall/adam/AssignSubVariableOp_4"}}),
            "sequential/dense|parameters");
  EXPECT_EQ(work({{"<layer>", "adam"},
                  {"<tensorflow layer>", "sequential/dense"},
                  {"<tensorflow variable>", "adam/sequential_dense_kernel_momentum"},
                  {"<tensorflow>", "StatefulPartitionedCall/adam/AssignAddVariableOp"}}),
            "adam|optimizer");
}

TEST(LayerWork, AWeightIsAParameterThoughItsValueWasPutOffToTheEndOfTheFirstCall) {
  EXPECT_EQ(work({{kPackages + "tensorflow/python/framework/func_graph.py", "func_graph_from_py_func"},
                  {kKerasLayerFile, "Layer.__call__"},
                  {kPackages + "keras/src/backend/common/variables.py", "initialize_all_variables"},
                  {kPackages + "keras/src/initializers/random_initializers.py", "__call__"},
                  {"<layer>", "rec"},
                  {"<tensorflow>", "AddV2"}}),
            "rec|parameters");
}

TEST(LayerWork, AnOptimizersStateIsNoParameterWhereItsLayerIsNotKnown) {
  EXPECT_EQ(work({{"<tensorflow layer>", "adam"},
                  {"<tensorflow variable>", "adam/rec_users_embeddings_momentum"},
                  {"<tensorflow>", "adam/rec_users_embeddings_momentum/Initializer/zeros"}}),
            "adam|optimizer");
}

/// "part|mode|layer bytes/count", largest first.
std::vector<std::string> grouped(const std::vector<Holder>& holders, const Tables& tables) {
  std::vector<std::string> out;
  for (const WorkHolder& group : group_by_work(holders, tables)) {
    out.push_back(group.part + '|' + mode_name(group.mode) + '|' + group.layer + ' ' +
                  std::to_string(group.bytes) + '/' + std::to_string(group.count));
  }
  return out;
}

TEST(GroupByWork, SumsOfTheGroupsAreThoseOfTheHolders) {
  Tables tables;
  const auto operation = [&](const char* name) { return push(&tables, {{"<tensorflow>", name}}); };
  const std::vector<Holder> holders = {{operation("s/d/Relu"), 500, 5},
                                       {operation("s/d/MatMul"), 300, 1},
                                       {operation("adam/Sub"), 900, 2},
                                       {0, 7, 1}};
  EXPECT_EQ(grouped(holders, tables),
            (std::vector<std::string>{"optimizer|graph| 900/2", "forward|graph|s/d 800/6",
                                      "unknown|unknown| 7/1"}));
}

TEST(GroupByWork, ALayerInTheFramesIsNamedWhereTheOperationsNameHasNone) {
  Tables tables;
  const uint32_t called = push(&tables, {{"keep.py", "<module>"},
                                         {kKerasLayerFile, "Layer.__call__"},
                                         {"<layer>", "sequential/dense"},
                                         {"<tensorflow>", "BiasAdd"}});
  const uint32_t weight = push(&tables, {{"keep.py", "<module>"},
                                         {kKerasLayerFile, "Layer.add_weight"},
                                         {"<layer>", "sequential/dense"},
                                         {"<tensorflow>", "AddV2"}});
  EXPECT_EQ(grouped({{called, 50, 2}, {weight, 4, 1}}, tables),
            (std::vector<std::string>{"forward|eager|sequential/dense 50/2",
                                      "parameters|eager|sequential/dense 4/1"}));
}

TEST(GroupByWork, AnOptimizersStateIsOfTheLayerWhoseVariableItBelongsToElseOfTheOptimizer) {
  Tables tables;
  const uint32_t state =
      push(&tables, {{"<layer>", "adam"},
                     {"<tensorflow layer>", "sequential/dense"},
                     {"<tensorflow variable>", "adam/sequential_dense_momentum"},
                     {"<tensorflow>", "StatefulPartitionedCall/adam/AssignAddVariableOp"}});
  const uint32_t scratch = push(&tables, {{"fit.py", "<module>"},
                                          {"<tensorflow>", "operation made by"},
                                          {"<layer>", "adam"},
                                          {"<tensorflow>", "StatefulPartitionedCall/adam/Sqrt"}});
  EXPECT_EQ(grouped({{state, 9, 1}, {scratch, 11, 3}}, tables),
            (std::vector<std::string>{"optimizer|graph|adam 11/3",
                                      "optimizer|graph|sequential/dense 9/1"}));
}

TEST(LayerWork, AStackThatIsUnknownIsInNoLayer) { EXPECT_EQ(work({}), "|unknown"); }

/// One run: blocks of given stacks, never freed.
struct TestRun {
  void alloc(const Frames& frames, uint64_t bytes) {
    address += 64;
    append(&events, {events.size() + 1, Action::kAlloc, address, bytes, push(&tables, frames)});
  }
  DiffSide read(int8_t type = 0) {
    MemorySource source(events);
    tables.devices = {{.process = 0, .type = type, .size_is_requested = true}};
    source.mutable_tables() = tables;
    analysis = *analyze_source(source, {});
    return {&analysis, &tables, main_device(analysis, tables)};
  }
  EventBatch events;
  Tables tables;
  Analysis analysis;
  uint64_t address = 0;
};

/// "layer|part: bytes in A -> in B"
std::vector<std::string> rows_of(const Diff& diff) {
  std::vector<std::string> rows;
  for (const DiffRow& row : diff.by_layer) {
    const Diff::LayerPart& of = diff.layers[row.node];
    rows.push_back(of.layer + '|' + of.part + ": " + std::to_string(row.a.peak_bytes) + " -> " +
                   std::to_string(row.b.peak_bytes));
  }
  return rows;
}

TEST(DiffByLayer, BetweenRunsOfTensorflowAnOptimizersStateIsOfTheLayerAsInAnalyze) {
  const Frames state = {{"<layer>", "adam"},
                        {"<tensorflow layer>", "sequential/dense"},
                        {"<tensorflow variable>", "adam/sequential_dense_kernel_momentum"},
                        {"<tensorflow>", "StatefulPartitionedCall/adam/AssignAddVariableOp"}};
  TestRun a, b;
  a.alloc(state, 100);
  b.alloc(state, 160);
  EXPECT_EQ(rows_of(diff_runs(a.read(kTensorflowCpu), b.read(kTensorflowCpu))),
            (std::vector<std::string>{"sequential/dense|optimizer: 100 -> 160"}));
  EXPECT_EQ(rows_of(diff_runs(a.read(), b.read(kTensorflowCpu))),
            (std::vector<std::string>{"adam|optimizer: 100 -> 160"}));
}

TEST(DiffByLayer, LayersAlignByTheirNamesAndAddUpWithWhatIsInNone) {
  TestRun a, b;
  a.alloc({{kKerasLayerFile, "Layer.add_weight"}, {"<layer>", "m/one"}}, 100);
  a.alloc({{"a.py", "f"}}, 7);
  b.alloc({{"/elsewhere" + kKerasLayerFile, "Layer.add_weight"}, {"<layer>", "m/one"}}, 100);
  b.alloc({{kKerasLayerFile, "Layer.__call__"}, {"<layer>", "m/one"}}, 40);
  const Diff diff = diff_runs(a.read(), b.read());
  ASSERT_EQ(diff.by_layer.size(), 3u);
  EXPECT_EQ(rows_of(diff), (std::vector<std::string>{"m/one|forward: 0 -> 40", "|unknown: 7 -> 0",
                                                     "m/one|parameters: 100 -> 100"}));
}

TEST(DiffByLayer, RunsThatNameNoneHaveNoRows) {
  TestRun a, b;
  a.alloc({{"a.py", "f"}}, 7);
  b.alloc({{"a.py", "f"}}, 8);
  const Diff diff = diff_runs(a.read(), b.read());
  EXPECT_TRUE(diff.by_layer.empty());
  EXPECT_TRUE(diff.layers.empty());
}

}  // namespace
}  // namespace gpumemprof

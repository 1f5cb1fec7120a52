// Names that TensorFlow 2.21 with Keras 3.15 gave to the operations of a training.
#include "analysis/op_names.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(OperationName, SaysPhaseLayerAndScope) {
  const std::string call = "StatefulPartitionedCall/";
  const std::string gradient = call + "gradient_tape/";
  const std::string loss = "compile_loss/sparse_categorical_crossentropy";
  const std::string softmax = "/SparseSoftmaxCrossEntropyWithLogits/";
  const std::vector<std::tuple<std::string, Phase, std::string, bool>> expected = {
      {call + "sequential_1/hidden_a_1/Relu", Phase::kForward, "sequential_1/hidden_a_1", true},
      {call + "sequential_1/head_1/BiasAdd", Phase::kForward, "sequential_1/head_1", true},
      {call + "sequential_1/d/Add/ReadVariableOp", Phase::kForward, "sequential_1/d", true},
      {call + loss + "/Cast_1", Phase::kForward, loss, true},
      {call + loss + softmax + "SparseSoftmaxCrossEntropyWithLogits", Phase::kForward, loss, true},
      {gradient + "sequential_1/head_1/MatMul/MatMul_1", Phase::kGradient, "sequential_1/head_1",
       true},
      {gradient + "sequential_1/head_1/BiasAdd/BiasAddGrad", Phase::kGradient,
       "sequential_1/head_1", true},
      {gradient + loss + softmax + "ExpandDims", Phase::kGradient, loss, true},
      {call + "adam/Square_2", Phase::kOptimizer, "", true},
      {call + "adam/AssignSubVariableOp_4", Phase::kOptimizer, "", true},
      {"adam/sequential_head_bias_momentum/Initializer/zeros", Phase::kOptimizer, "", true},
      {"Adam/Adam/update/ResourceApplyAdam", Phase::kOptimizer, "", true},
      {call + "Add_1", Phase::kUnknown, "", true},
      {call + "div_no_nan", Phase::kUnknown, "", true},
      {"Reshape/shape", Phase::kUnknown, "", true},
      {"range/start", Phase::kUnknown, "", true},
      {"GatherV2_1/axis", Phase::kUnknown, "", true},
      {"MakeIterator", Phase::kInput, "", false},
      {"AnonymousIteratorV3", Phase::kInput, "", false},
      {"ParallelMapDatasetV2", Phase::kInput, "", false},
      {"OptionalGetValue", Phase::kInput, "", false},
      {"optional", Phase::kInput, "", false},
      {"MatMul", Phase::kUnknown, "", false},
      {"_EagerConst", Phase::kUnknown, "", false},
      {"", Phase::kUnknown, "", false},
      {"/", Phase::kUnknown, "", true},
  };
  for (const auto& [name, phase, layer, has_scope] : expected) {
    const OperationName found = parse_operation_name(name);
    EXPECT_STREQ(phase_name(found.phase), phase_name(phase)) << name;
    EXPECT_EQ(found.layer, layer) << name;
    EXPECT_EQ(found.has_scope, has_scope) << name;
  }
}

TEST(OperationName, CallsOfFunctionsAndClustersOfXlaAreNamed) {
  EXPECT_EQ(parse_operation_name("__inference_multi_step_on_iterator_1147").function,
            "multi_step_on_iterator");
  EXPECT_EQ(parse_operation_name("cluster_0_1/xla_run").xla_cluster, "cluster_0_1");
  EXPECT_EQ(parse_operation_name("StatefulPartitionedCall/d/MatMul").function, "");
}

/// Tables with a stack: an operation, and frames of files, the innermost first.
uint32_t stack_of(Tables* tables, const std::string& operation,
                  const std::vector<std::string>& files) {
  uint32_t stack = 0;
  for (auto file = files.rbegin(); file != files.rend(); ++file) {
    const bool is_made_by = *file == kMadeBy;
    stack = tables->stacks.push(
        stack, tables->stacks.intern_frame(
                   {tables->strings.intern(is_made_by ? kOperationFile : std::string_view(*file)),
                    tables->strings.intern(is_made_by ? kMadeBy : "f"), is_made_by ? 0u : 5u}));
  }
  if (operation.empty()) return stack;
  return tables->stacks.push(
      stack, tables->stacks.intern_frame(
                 {tables->strings.intern(kOperationFile), tables->strings.intern(operation), 0}));
}

const std::string kTensorflow = "/p/site-packages/tensorflow/python/";
const std::string kCallOfGraph = kTensorflow + "eager/polymorphic_function/atomic_function.py";
const std::string kFuncGraph = kTensorflow + "framework/func_graph.py";
const std::string kAdam = "/p/site-packages/keras/src/optimizers/adam.py";

TEST(Work, EagerAndGraphAreToldApart) {
  Tables tables;
  auto mode = [&](const char* name, const std::vector<std::string>& files) {
    return std::string(mode_name(work_of(tables, stack_of(&tables, name, files)).mode));
  };
  EXPECT_EQ(mode("Fill", {kTensorflow + "ops/gen_array_ops.py", "train.py"}), "eager");
  EXPECT_EQ(mode("Fill", {kCallOfGraph, "train.py"}), "graph");
  EXPECT_EQ(mode("Fill", {}), "graph") << "a thread of an executor";
  EXPECT_EQ(mode("Fill_3", {std::string(kMadeBy), "train.py"}), "graph");
  EXPECT_EQ(mode("a/Fill", {"train.py"}), "graph");
  EXPECT_EQ(mode("", {"train.py"}), "unknown");
}

TEST(Work, FramesSayThePhaseWhereTheNameDoesNot) {
  Tables tables;
  auto phase = [&](const char* name, const std::vector<std::string>& files) {
    return std::string(phase_name(work_of(tables, stack_of(&tables, name, files)).phase));
  };
  EXPECT_EQ(phase("Fill", {kAdam, "train.py"}), "optimizer");
  EXPECT_EQ(phase("Const", {kFuncGraph, kCallOfGraph, "train.py"}), "graph compilation");
  EXPECT_EQ(phase("Const", {kCallOfGraph, kFuncGraph, "train.py"}), "unknown") << "a graph runs";
  EXPECT_EQ(phase("Cast", {kTensorflow + "data/ops/dataset_ops.py", "train.py"}), "input pipeline");
  EXPECT_EQ(phase("Mul", {kTensorflow + "eager/backprop.py", "train.py"}), "gradient");
  EXPECT_EQ(phase("Sub_1", {std::string(kMadeBy), kAdam, kFuncGraph}), "optimizer");
  EXPECT_EQ(phase("Sub_1", {std::string(kMadeBy), kFuncGraph}), "unknown");
  EXPECT_EQ(phase("StatefulPartitionedCall/gradient_tape/d/MatMul/MatMul", {kAdam}), "gradient");
}

TEST(Work, SumsOfTheGroupsAreThoseOfTheHolders) {
  Tables tables;
  const std::vector<Holder> holders = {{stack_of(&tables, "s/d/Relu", {}), 500, 5},
                                       {stack_of(&tables, "s/d/MatMul", {}), 300, 1},
                                       {stack_of(&tables, "adam/Sub", {}), 900, 2},
                                       {0, 7, 1}};
  const std::vector<WorkHolder> groups = group_by_work(holders, tables);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].phase, Phase::kOptimizer);
  EXPECT_EQ(groups[0].bytes, 900u);
  EXPECT_EQ(groups[1].layer, "s/d");
  EXPECT_EQ(groups[1].bytes, 800u);
  EXPECT_EQ(groups[1].count, 6u);
  EXPECT_EQ(groups[2].bytes, 7u);
}

}  // namespace
}  // namespace gpumemprof

// Names that TensorFlow 2.21 with Keras 3.15 gave to the operations of a training.
#include "analysis/pass/op_names.h"

#include <gtest/gtest.h>

#include "recording/operation_lines.h"
#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

Work work_of(const Tables& tables, uint32_t stack) { return WorkReader(tables).of(stack); }

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

TEST(Work, WithoutStacksAnOperationWithoutAScopeIsOfNoKnownMode) {
  // TensorFlow's own profiles, and recordings with --stacks none or native.
  for (const char* stacks : {"none", "none: a profile has operation names only", "native"}) {
    Tables tables;
    tables.processes.push_back({.stacks = stacks});
    const auto mode = [&](const char* name) {
      return std::string(mode_name(work_of(tables, stack_of(&tables, name, {})).mode));
    };
    EXPECT_EQ(mode("Fill"), "unknown");
    EXPECT_EQ(mode("a/Fill"), "graph");
    EXPECT_EQ(mode("__inference_step_7"), "graph");
  }
  Tables tables;
  tables.processes.push_back({.stacks = "python"});
  EXPECT_EQ(work_of(tables, stack_of(&tables, "Fill", {})).mode, ExecutionMode::kGraph);
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

TEST(Work, AVariableTellsTheLayerAndAClusterItsFunction) {
  Tables tables;
  const auto frame = [&](std::string_view file, std::string_view function) {
    return tables.stacks.intern_frame(
        {tables.strings.intern(file), tables.strings.intern(function), 0});
  };
  const auto with = [&](std::vector<uint32_t> frames) {
    uint32_t stack = 0;
    for (uint32_t each : frames) stack = tables.stacks.push(stack, each);
    return stack;
  };
  const Work slot = work_of(
      tables, with({frame(kLayerFile, "s/dense_kernel"), frame(kVariableFile, "adam/s_m"),
                    frame(kOperationFile, "StatefulPartitionedCall/adam/AssignAddVariableOp_5")}));
  EXPECT_EQ(slot.phase, Phase::kOptimizer);
  EXPECT_EQ(slot.layer, "s/dense_kernel");
  EXPECT_EQ(slot.variable, "adam/s_m");
  const Work unknown = work_of(tables, with({frame(kVariableFile, "adam/iteration"),
                                             frame(kOperationFile, "adam/AssignAddVariableOp")}));
  EXPECT_EQ(unknown.layer, "");
  // Of a second trace: TensorFlow calls the layer conv2d by the name that is another layer's.
  const char* const kSecond = "StatefulPartitionedCall/sequential_1/conv2d_1/Relu";
  EXPECT_EQ(work_of(tables, with({frame(kOperationFile, kMadeBy), frame(kLayerScopeFile, "sequential/conv2d"),
                                  frame(kOperationFile, kSecond)}))
                .layer,
            "sequential/conv2d");
  EXPECT_EQ(work_of(tables, with({frame(kLayerScopeFile, "sequential/other"), frame(kOperationFile, kMadeBy),
                                  frame(kOperationFile, kSecond)}))
                .layer,
            "sequential_1/conv2d_1")
      << "the layer of the code that made it is not said";
  const Work jitted = work_of(tables, with({frame(kClusterFile, "__inference_scaled_17"),
                                            frame(kOperationFile, "__inference_scaled_17")}));
  EXPECT_EQ(jitted.xla_cluster, "__inference_scaled_17");
  EXPECT_EQ(jitted.function, "scaled");
}

TEST(WorkReader, ManyStacksOfManyProcessesLookAtEachNameOnce) {
  constexpr uint32_t kStacks = 1000, kProcesses = 4096;
  Tables tables;
  tables.processes.resize(kProcesses, {.stacks = "none"});
  std::vector<uint32_t> stacks;
  for (uint32_t i = 0; i < kStacks; ++i) {
    stacks.push_back(stack_of(&tables, "MatMul_" + std::to_string(i), {}));
  }
  WorkReader reader(tables);
  for (uint32_t round = 0; round < 2; ++round) {
    for (uint32_t stack : stacks) EXPECT_STREQ(mode_name(reader.of(stack).mode), "unknown");
  }
  EXPECT_EQ(reader.steps(), kProcesses + 1) << "the one file is that of operations";
}

}  // namespace
}  // namespace gpumemprof

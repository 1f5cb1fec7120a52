#include "analysis/categories/attribution.h"

#include <gtest/gtest.h>

#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

const std::string kTorch = "/venv/lib/python3.11/site-packages/torch/";

Attribution of(const std::vector<std::pair<std::string_view, std::string_view>>& frames) {
  static Tables tables;
  uint32_t stack = 0;
  for (const auto& [file, function] : frames) {
    const uint32_t line = file.starts_with('<') ? 0 : 3;
    const Frame frame{tables.strings.intern(file), tables.strings.intern(function), line};
    stack = tables.stacks.push(stack, tables.stacks.intern_frame(frame));
  }
  return attribution_of(tables, stack);
}

TEST(Attribution, TellsThePhaseFromPyTorchsOwnFramesAndNames) {
  const std::pair<std::string, std::string> mine{"/me/a.py", "main"}, module{kModuleFile, "head"},
      no_grad{kModeFile, "no grad"}, node{kBackwardFile, "MulBackward0"};
  EXPECT_EQ(of({mine}).phase, WorkPhase::kNone);
  EXPECT_EQ(of({mine, module}).phase, WorkPhase::kForward);
  EXPECT_EQ(of({mine, no_grad, module}).phase, WorkPhase::kEvaluation);
  EXPECT_EQ(of({mine, no_grad, module, node}).phase, WorkPhase::kBackward);
  const std::pair<std::string, std::string> step{kTorch + "optim/optimizer.py",
                                                 "Optimizer.profile_hook_step.<locals>.wrapper"};
  EXPECT_EQ(of({mine, step, no_grad}).phase, WorkPhase::kOptimizer);
  const std::pair<std::string, std::string> next{kTorch + "utils/data/dataloader.py",
                                                 "_BaseDataLoaderIter.__next__"};
  EXPECT_EQ(of({mine, next}).phase, WorkPhase::kDataLoading);
}

TEST(Attribution, NamesWithoutTheirClassesAsPythonHadThemBefore311SayTheSame) {
  const std::pair<std::string, std::string> mine{"/me/a.py", "main"},
      step{kTorch + "optim/optimizer.py", "wrapper"},
      call{kTorch + "nn/modules/module.py", "_call_impl"}, module{kModuleFile, "head"},
      next{kTorch + "utils/data/dataloader.py", "__next__"};
  EXPECT_EQ(of({mine, step}).phase, WorkPhase::kOptimizer);
  EXPECT_EQ(of({mine, call, module}).phase, WorkPhase::kForward);
  EXPECT_EQ(of({mine, next}).phase, WorkPhase::kDataLoading);
  EXPECT_TRUE(of({mine, {kTorch + "nn/parameter.py", "__deepcopy__"}}).is_weight_copy);
  EXPECT_TRUE(of({mine, {kTorch + "optim/swa_utils.py", "__init__"}}).is_weight_copy);
  EXPECT_TRUE(of({mine, {kTorch + "distributed/checkpoint/_state_dict_stager.py", "stage"}})
                  .is_weight_copy);
  EXPECT_FALSE(of({mine, {kTorch + "distributed/checkpoint/state_dict_saver.py", "async_save"}})
                   .is_weight_copy);
  EXPECT_TRUE(of({mine, {kTorch + "nn/modules/module.py", "_apply"}}).is_in_setup);
  EXPECT_FALSE(of({mine, {kTorch + "nn/modules/module.py", "apply"}}).is_in_setup);
}

using Names = std::pair<std::string, std::string>;

TEST(Attribution, OnWindowsTheSameFramesSayTheSame) {
  const std::string torch = "C:\\venv\\Lib\\site-packages\\torch\\";
  const Names mine{"C:\\me\\a.py", "main"}, step{torch + "optim\\optimizer.py", "wrapper"},
      call{torch + "nn\\modules\\module.py", "_call_impl"},
      next{torch + "utils\\data\\dataloader.py", "__next__"};
  EXPECT_EQ(of({mine, step}).phase, WorkPhase::kOptimizer);
  EXPECT_EQ(of({mine, next}).phase, WorkPhase::kDataLoading);
  EXPECT_EQ(of({mine, {torch + "autograd\\graph.py", "_engine_run_backward"}}).phase,
            WorkPhase::kBackward);
  EXPECT_EQ(of({mine, call, {kModuleFile, "head"}}).phase, WorkPhase::kForward);
  EXPECT_TRUE(of({mine, {torch + "nn\\parameter.py", "__deepcopy__"}}).is_weight_copy);
  EXPECT_TRUE(of({mine, {torch + "nn\\modules\\module.py", "_apply"}}).is_in_setup);
}

TEST(Attribution, ReducersMakeTheirBucketsThemselves) {
  const std::string file = kTorch + "nn/parallel/distributed.py";
  const Names mine{"/me/a.py", "main"}, native{"reducer.cpp", "c10d::Reducer::initialize_buckets"},
      inputs{kTorch + "distributed/utils.py", "_to_kwargs"};
  for (const char* function : {"DistributedDataParallel._ddp_init_helper", "_pre_forward"}) {
    EXPECT_TRUE(of({mine, {file, function}}).is_reducer) << function;
    EXPECT_TRUE(of({mine, {file, function}, native}).is_reducer) << function;
    EXPECT_FALSE(of({mine, {file, function}, inputs}).is_reducer) << function;
  }
  EXPECT_FALSE(of({mine, {file, "DistributedDataParallel.forward"}}).is_reducer);
  EXPECT_FALSE(of({{"/me/distributed.py", "_pre_forward"}}).is_reducer);
}

TEST(Attribution, WhatTorchDistributedMakesItselfIsOfACollective) {
  const Names mine{"/me/a.py", "main"}, native{"Ops.cpp", "c10d::ops::reduce_scatter"},
      call{kTorch + "distributed/distributed_c10d.py", "reduce_scatter_single"};
  EXPECT_TRUE(of({mine, call}).is_collective);
  EXPECT_TRUE(of({mine, call, native}).is_collective);
  EXPECT_FALSE(of({call, mine}).is_collective) << "a hook of the program";
  EXPECT_FALSE(of({mine, {kTorch + "autograd/graph.py", "_engine_run_backward"}}).is_collective);
}

TEST(Attribution, FunctionsOfAutogradAndModulesWithACallOfTheirOwnCompute) {
  const Names mine{"/me/a.py", "main"}, call{"/x/site-packages/gp/module.py", "Module.__call__"},
      forward{"/x/site-packages/gp/kernel.py", "Kernel.forward"}, inner{"/me/b.py", "squared"};
  EXPECT_TRUE(of({mine, {kTorch + "autograd/function.py", "Function.apply"}, inner}).is_computed);
  EXPECT_TRUE(of({mine, {kTorch + "autograd/function.py", "apply"}}).is_computed);
  EXPECT_TRUE(of({mine, call, forward, inner}).is_computed);
  EXPECT_FALSE(of({mine, call, inner, forward}).is_computed) << "a transformation of data";
  EXPECT_FALSE(of({mine, forward}).is_computed);
}

TEST(Attribution, KeysAndValuesAreWhatTheUpdateOfACacheOfTransformersMakes) {
  const std::string_view file = "/venv/site-packages/transformers/cache_utils.py";
  const Names mine{"/me/a.py", "main"};
  EXPECT_TRUE(of({mine, {file, "DynamicLayer.update"}}).is_kv_update);
  EXPECT_TRUE(of({mine, {file, "update"}, {kTorch + "functional.py", "cat"}}).is_kv_update);
  EXPECT_FALSE(of({mine, {file, "LinearAttentionLayer.update_conv_state"}}).is_kv_update);
  EXPECT_FALSE(of({{"/me/cache_utils.py", "DynamicLayer.update"}}).is_kv_update);
}

TEST(Attribution, OfWhatAnOptimizersStepCallsTheInnermostCounts) {
  const Names wrapper{kTorch + "optim/optimizer.py",
                      "Optimizer.profile_hook_step.<locals>.wrapper"},
      use_grad{kTorch + "optim/optimizer.py", "_use_grad_for_differentiable.<locals>._use_grad"},
      sgd{kTorch + "optim/sgd.py", "SGD.step"}, mine{"/me/a.py", "closure"},
      no_grad{kModeFile, "no grad"},
      call{kTorch + "nn/modules/module.py", "Module._wrapped_call_impl"},
      module{kModuleFile, "head"}, engine{kTorch + "autograd/graph.py", "_engine_run_backward"},
      trainer{"/venv/lib/python3.11/site-packages/trainer/loop.py", "run"},
      next{kTorch + "utils/data/dataloader.py", "_BaseDataLoaderIter.__next__"};
  const auto phase = [&](std::vector<Names> inner) {
    inner.insert(inner.begin(), {{"/me/a.py", "main"}, wrapper, use_grad, sgd});
    return of(
        std::vector<std::pair<std::string_view, std::string_view>>(inner.begin(), inner.end()));
  };
  EXPECT_EQ(phase({}).phase, WorkPhase::kOptimizer);
  EXPECT_EQ(phase({no_grad}).phase, WorkPhase::kOptimizer);
  EXPECT_EQ(phase({mine, call, module}).phase, WorkPhase::kForward);
  EXPECT_EQ(phase({mine, call, no_grad, module}).phase, WorkPhase::kEvaluation);
  EXPECT_EQ(phase({mine, engine, no_grad}).phase, WorkPhase::kBackward);
  EXPECT_EQ(phase({mine, next}).phase, WorkPhase::kDataLoading);
  // As the same code in a loop: outside of any module.
  EXPECT_EQ(phase({mine}).phase, WorkPhase::kNone);
  EXPECT_EQ(phase({trainer, {kTorch + "functional.py", "norm"}}).phase, WorkPhase::kNone);
  EXPECT_TRUE(phase({mine}).is_in_step);
  // A tensor of a class with operators of its own.
  const Names dispatch{"/venv/lib/python3.11/site-packages/quantized/a.py",
                       "Low.__torch_dispatch__"};
  EXPECT_EQ(phase({no_grad, dispatch}).phase, WorkPhase::kOptimizer);
  // A step within a module's call, as of a trainer that calls its own loop through the model.
  EXPECT_EQ(of({call, wrapper, sgd, no_grad, module}).phase, WorkPhase::kOptimizer);
  EXPECT_EQ(of({call, wrapper, sgd, mine, module}).phase, WorkPhase::kForward);
}

TEST(Attribution, AnOptimizerOfTheProgramsOwnHasFramesOfItsOwn) {
  const Names wrapper{kTorch + "optim/optimizer.py",
                      "Optimizer.profile_hook_step.<locals>.wrapper"},
      decorated{kTorch + "utils/_contextlib.py", "context_decorator.<locals>.decorate_context"},
      step{"/me/lion.py", "Lion.step"}, helper{"/me/lion.py", "update"},
      mine{"/me/a.py", "closure"}, no_grad{kModeFile, "no grad"},
      apex{"/venv/lib/python3.11/site-packages/apex/adam.py", "step"},
      apply{"/venv/lib/python3.11/site-packages/apex/apply.py", "__call__"};
  EXPECT_EQ(of({wrapper, step}).phase, WorkPhase::kOptimizer);
  EXPECT_EQ(of({wrapper, step, helper}).phase, WorkPhase::kOptimizer);
  EXPECT_EQ(of({wrapper, step, mine, no_grad}).phase, WorkPhase::kOptimizer);
  EXPECT_EQ(of({wrapper, apex, apply}).phase, WorkPhase::kOptimizer);
  EXPECT_EQ(of({wrapper, step, mine}).phase, WorkPhase::kNone);
  EXPECT_EQ(of({wrapper, apex, mine}).phase, WorkPhase::kNone);
  // Gradients were off in the step, and are on again.
  EXPECT_EQ(of({wrapper, decorated, step, helper}).phase, WorkPhase::kNone);
}

TEST(Attribution, DoesNotLookAtTheNamesOfTheUsersOwnCode) {
  EXPECT_EQ(of({{"/me/optim/optimizer.py", "profile_hook_step"}}).phase, WorkPhase::kNone);
  EXPECT_EQ(of({{"/me/dataloader.py", "__next__"}}).phase, WorkPhase::kNone);
}

TEST(Attribution, OfAForwardThatCheckpointingRunsIsForwardAndTheSecondTimeRecomputed) {
  const std::pair<std::string, std::string> checkpoint{kTorch + "utils/checkpoint.py", "forward"};
  const Attribution first = of({checkpoint, {kModeFile, "no grad"}, {kModuleFile, "a"}});
  EXPECT_EQ(first.phase, WorkPhase::kForward);
  EXPECT_FALSE(first.is_recomputed);
  const Attribution second = of({checkpoint, {kModuleFile, "a"}, {kBackwardFile, "X"}});
  EXPECT_EQ(second.phase, WorkPhase::kBackward);
  EXPECT_TRUE(second.is_recomputed);
}

TEST(Attribution, OfACompiledForwardIsForwardThoughGradientsAreOffWithinIt) {
  const Names file{kTorch + "_functorch/_aot_autograd/runtime_wrappers.py",
                   "AOTDispatchAutograd.post_compile.<locals>.CompiledFunction.forward"},
      no_grad{kModeFile, "no grad"}, module{kModuleFile, "net"},
      mine{"/me/a.py", "CompiledFunction.forward"};
  EXPECT_EQ(of({file, no_grad, module}).phase, WorkPhase::kForward);
  EXPECT_EQ(of({mine, no_grad, module}).phase, WorkPhase::kEvaluation);
  EXPECT_EQ(of({file, no_grad, module, {kBackwardFile, "PyNode"}}).phase, WorkPhase::kBackward);
}

TEST(Attribution, NamesModuleNodeAndTheProgramsOwnPhase) {
  const Attribution work =
      of({{kPhaseFile, "warm-up"}, {kModuleFile, "encoder.0"}, {kBackwardFile, "MulBackward0"}});
  EXPECT_EQ(work.module, "encoder.0");
  EXPECT_EQ(work.node, "MulBackward0");
  EXPECT_EQ(work.user_phase, "warm-up");
}

TEST(Attribution, KnowsALibrarysWorkspaceByTheNativeFramesWithinTheOperation) {
  const std::pair<std::string, std::string> mine{"/me/a.py", "main"}, module{kModuleFile, "head"},
      operation{"libtorch_cuda.so", "at::_ops::addmm::call(at::Tensor const&)"},
      handle{"libtorch_cuda.so", "at::cuda::getCurrentCUDABlasHandle()"},
      tensor{"libtorch_cuda.so", "at::detail::empty_cuda(c10::ArrayRef<long>)"};
  EXPECT_TRUE(of({mine, operation, handle, module}).is_workspace);
  EXPECT_FALSE(of({mine, operation, handle, tensor, module}).is_workspace);
  EXPECT_FALSE(of({mine, handle, operation, module}).is_workspace);
  EXPECT_FALSE(of({mine, module}).is_workspace);
}

TEST(Attribution, FindsTheModuleInTheNameOfWhatItHolds) {
  EXPECT_EQ(module_of_storage("encoder.0.weight"), "encoder.0");
  EXPECT_EQ(module_of_storage("exp_avg of encoder.0.weight"), "encoder.0");
  EXPECT_EQ(module_of_storage("cells.weight_ih_l0 and 3 more"), "cells");
  EXPECT_EQ(module_of_storage("weight"), "");
}

}  // namespace
}  // namespace gpumemprof

#include "analysis/categories/snapshot_work.h"

#include <gtest/gtest.h>

#include <string>

#include "analysis/categories/torch_frames.h"

namespace gpumemprof {
namespace {

using Pair = std::pair<std::string, std::string>;

/// Frames from the outermost to the innermost.
SnapshotWork work_of(const std::vector<Pair>& frames) {
  Tables tables;
  uint32_t stack = 0;
  for (const auto& [file, function] : frames) {
    const uint32_t line = file.ends_with(".py") ? 3 : 0;
    const Frame frame{tables.strings.intern(file), tables.strings.intern(function), line};
    stack = tables.stacks.push(stack, tables.stacks.intern_frame(frame));
  }
  return SnapshotWorks(tables).of(stack);
}

const std::string kTorchFolder = "/venv/lib/python3.12/site-packages/torch/";
const Pair kMain{"/me/train.py", "main"};
const Pair kCall{kTorchFolder + "nn/modules/module.py", "_call_impl"};
const Pair kForward{"/me/model.py", "forward"};
const Pair kRun{kTorchFolder + "autograd/graph.py", "_engine_run_backward"};
const Pair kStep{kTorchFolder + "optim/optimizer.py", "wrapper"};
const Pair kApply{kTorchFolder + "autograd/function.py", "apply"};
const Pair kEngine{"??", "torch::autograd::Engine::thread_main(std::shared_ptr<GraphTask> const&)"};
const Pair kNode{"", "torch::autograd::Node::operator()(std::vector<at::Tensor>&&)"};
const Pair kMultiply{"??", "at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor const&)"};
const Pair kEmpty{"??", "at::detail::empty_cuda(c10::ArrayRef<long>, c10::TensorOptions const&)"};

TEST(SnapshotWork, TellsThePhaseFromPyTorchsOwnFiles) {
  EXPECT_EQ(work_of({kMain}).phase, WorkPhase::kNone);
  EXPECT_EQ(work_of({kMain, kCall, kForward}).phase, WorkPhase::kForward);
  EXPECT_EQ(work_of({kMain, kRun}).phase, WorkPhase::kBackward);
  EXPECT_EQ(work_of({kMain, kStep, {"/me/adam.py", "step"}}).phase, WorkPhase::kOptimizer);
  const Pair next{kTorchFolder + "utils/data/dataloader.py", "__next__"};
  EXPECT_EQ(work_of({kMain, next, {"/me/data.py", "load"}}).phase, WorkPhase::kDataLoading);
}

TEST(SnapshotWork, ReadsTheFilesOfWindowsToo) {
  const Pair call{"C:\\venv\\lib\\site-packages\\torch\\nn\\modules\\module.py", "_call_impl"};
  const Pair apply{"C:\\venv\\lib\\site-packages\\torch\\nn\\modules\\module.py", "_apply"};
  EXPECT_EQ(work_of({{"C:\\me\\a.py", "f"}, call}).phase, WorkPhase::kForward);
  EXPECT_TRUE(work_of({{"C:\\me\\a.py", "f"}, apply}).is_in_setup);
}

TEST(SnapshotWork, DoesNotLookAtTheNamesOfTheUsersOwnCode) {
  for (const Pair& mine : {Pair{"/me/nn/modules/module.py", "_call_impl"},
                           Pair{"/me/mytorch/optim/optimizer.py", "wrapper"},
                           Pair{"/me/backward.py", "backward"}, Pair{"/me/init.py", "__init__"}}) {
    const SnapshotWork work = work_of({kMain, mine});
    EXPECT_EQ(work.phase, WorkPhase::kNone) << mine.first;
    EXPECT_FALSE(work.is_in_setup) << mine.first;
  }
}

TEST(SnapshotWork, KnowsBackwardByTheEngineAndByTheThreadThatBeginsInAFunction) {
  const SnapshotWork native = work_of({kEngine, kNode, kMultiply, kEmpty});
  EXPECT_EQ(native.phase, WorkPhase::kBackward);
  EXPECT_FALSE(native.is_recomputed || native.is_accumulated || native.has_python);
  // A function of the program's, called in forward: its frame is not the outermost.
  EXPECT_EQ(work_of({kMain, kCall, kApply, {"/me/f.py", "forward"}}).phase, WorkPhase::kForward);
  EXPECT_EQ(work_of({kApply, {"/me/f.py", "backward"}}).phase, WorkPhase::kBackward);
}

TEST(SnapshotWork, OfAnAccumulatorsMemoryIsAGradients) {
  const Pair accumulate{"??", "torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)"};
  EXPECT_TRUE(work_of({kEngine, kNode, accumulate, kEmpty}).is_accumulated);
  const Pair argument{"??", "f(torch::autograd::AccumulateGrad*)"};
  EXPECT_FALSE(work_of({kMain, argument}).is_accumulated);
}

TEST(SnapshotWork, OfAForwardWithinBackwardIsComputedAgain) {
  const SnapshotWork work = work_of({kMain, kRun, kApply, kCall, kForward});
  EXPECT_EQ(work.phase, WorkPhase::kBackward);
  EXPECT_TRUE(work.is_recomputed);
  const Pair checkpoint{kTorchFolder + "utils/checkpoint.py", "recompute_fn"};
  EXPECT_TRUE(work_of({kMain, kRun, checkpoint, {"/me/f.py", "f"}}).is_recomputed);
  EXPECT_EQ(work_of({kMain, checkpoint, kCall, kForward}).phase, WorkPhase::kForward);
  // On a thread of autograd's own it is the outermost.
  EXPECT_TRUE(work_of({checkpoint, kCall, kForward}).is_recomputed);
}

TEST(SnapshotWork, KnowsDataParallelsReplicasAndPartsOfABatch) {
  const Pair wrapper{kTorchFolder + "nn/parallel/data_parallel.py", "DataParallel.forward"},
      copies{kTorchFolder + "nn/parallel/replicate.py", "replicate"},
      sends{kTorchFolder + "nn/parallel/comm.py", "broadcast_coalesced"},
      splits{kTorchFolder + "nn/parallel/scatter_gather.py", "scatter_kwargs"},
      gathers{kTorchFolder + "nn/parallel/scatter_gather.py", "gather"};
  const SnapshotWork replica = work_of({kMain, kCall, wrapper, copies, sends});
  EXPECT_TRUE(replica.is_replica && !replica.is_scattered);
  EXPECT_EQ(replica.phase, WorkPhase::kForward);
  EXPECT_TRUE(work_of({kMain, kCall, wrapper, splits}).is_scattered);
  EXPECT_FALSE(work_of({kMain, kCall, wrapper, gathers}).is_scattered);
  EXPECT_FALSE(work_of({kMain, kCall, wrapper, sends}).is_replica) << "of who knows whose call";
}

TEST(SnapshotWork, OfABackwardWithinAModuleOrAStepIsTheInnermost) {
  EXPECT_EQ(work_of({kMain, kCall, kForward, kRun}).phase, WorkPhase::kBackward);
  EXPECT_EQ(work_of({kMain, kStep, {"/me/a.py", "closure"}, kCall}).phase, WorkPhase::kForward);
}

TEST(LibraryWorkspace, IsWhatALibraryAsksTheAllocatorForItself) {
  const Pair handle{"??", "at::cuda::getCurrentCUDABlasHandle()"};
  const Pair workspace{"", "at::cuda::getNewWorkspace()"};
  EXPECT_TRUE(work_of({kMain, kCall, kMultiply, handle, workspace}).is_workspace);
  const Pair plan{"", "at::native::run_conv_plan(cudnnContext*, at::Tensor const&)"};
  EXPECT_TRUE(
      work_of({kMain, kMultiply, {"", "at::native::cudnn_convolution_forward(char const*)"}, plan})
          .is_workspace);
}

TEST(LibraryWorkspace, IsACopyThatOneDnnMakesForItselfAndNotItsResult) {
  const Pair convolution{"libtorch_cpu.so", "at::native::mkldnn_convolution(at::Tensor const&)"};
  const Pair init{"libtorch_cpu.so", "ideep::tensor::init(ideep::tensor::desc const&)"};
  const Pair copy{"libtorch_cpu.so", "ideep::tensor::reorder_if_differ_in(ideep::tensor::desc)"};
  const Pair result{"libtorch_cpu.so", "ideep::tensor::reinit_if_possible(ideep::tensor::desc)"};
  EXPECT_TRUE(work_of({kMain, kCall, convolution, copy, init}).is_workspace);
  EXPECT_FALSE(work_of({kMain, kCall, convolution, result, init}).is_workspace);
  EXPECT_FALSE(work_of({kMain, kCall, convolution, init}).is_workspace);
}

TEST(LibraryWorkspace, IsNoTensorThatALibraryFills) {
  const Pair convolution{"", "at::native::cudnn_convolution_forward(char const*)"};
  EXPECT_FALSE(work_of({kMain, kMultiply, convolution, kEmpty}).is_workspace);
  EXPECT_FALSE(work_of({kMain, {"/me/cudnn.py", "getNewWorkspace"}}).is_workspace);
  EXPECT_FALSE(work_of({kMain, {"??", "at::cuda::getCurrentCUDABlasHandle()"}, kMultiply, {"??", "f()"}})
                   .is_workspace);
  EXPECT_EQ(asks_for_workspace("f(cudnnContext*)"), std::nullopt);
}

}  // namespace
}  // namespace gpumemprof

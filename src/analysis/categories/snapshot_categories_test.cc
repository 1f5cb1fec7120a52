// A training loop on paper: every block's category, rule and confidence at the peak.
#include "analysis/categories/snapshot_categories.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "analysis/categories/snapshot_rules.h"
#include "analysis/replay/snapshot_for_tests.h"

namespace gpumemprof {
namespace {

/// Stacks of a training program, Python's alone.
class Training {
 public:
  enum Where : uint32_t {
    kNowhere,
    kSetUp,
    kData,
    kForward,
    kLoss,
    kBackward,
    kStep,
    kZeroGrad,
    kMain
  };

  Training() {
    Tables& tables = paper.snapshot.tables;
    const auto push = [&](uint32_t parent, const char* file, const char* function) {
      const Frame frame{tables.strings.intern(file), tables.strings.intern(function), 7};
      return tables.stacks.push(parent, tables.stacks.intern_frame(frame));
    };
    stacks_[kMain] = push(0, "/me/train.py", "main");
    stacks_[kSetUp] = push(stacks_[kMain], "/x/torch/nn/modules/module.py", "_apply");
    stacks_[kData] = push(stacks_[kMain], "/me/train.py", "batch");
    stacks_[kForward] = push(stacks_[kMain], "/x/torch/nn/modules/module.py", "_call_impl");
    stacks_[kLoss] = push(stacks_[kMain], "/x/torch/nn/functional.py", "cross_entropy");
    stacks_[kBackward] = push(stacks_[kMain], "/x/torch/autograd/graph.py", "_engine_run_backward");
    stacks_[kStep] = push(stacks_[kMain], "/x/torch/optim/optimizer.py", "wrapper");
    stacks_[kZeroGrad] = push(stacks_[kMain], "/x/torch/optim/optimizer.py", "zero_grad");
  }
  void alloc(uint64_t address, uint64_t size_bytes, Where where) {
    sizes_[address] = size_bytes;
    add(Action::kAlloc, address, where);
  }
  void free(uint64_t address, Where where) {
    add(Action::kFreeRequested, address, where);
    add(Action::kFreeCompleted, address, where);
    sizes_.erase(address);
  }
  /// One step: batch 2, activation 3, temporary 4, loss 5, gradient 6, states 7 on the first.
  void step(bool is_first) {
    alloc(2, 20, kData);
    alloc(3, 300, kForward);
    alloc(4, 4000, kForward);
    free(4, kForward);
    alloc(5, 8, kLoss);
    alloc(6, 1000, kBackward);
    peak_event = last();
    free(3, kBackward);
    if (is_first) alloc(7, 1000, kStep);
    alloc(8, 50, kStep);
    free(8, kStep);
    free(5, kMain);
    free(2, kMain);
    free(6, kMain);
  }
  uint32_t stack(Where where) const { return stacks_.at(where); }
  size_t last() const { return paper.snapshot.traces[0].events.size() - 1; }
  DeviceCategories categories(std::optional<uint64_t> event, uint64_t bytes) {
    const TraceStart start = trace_start(paper.snapshot.traces[0]);
    return categories_of_trace(paper.snapshot, 0, start, event, bytes);
  }
  void leave_live(uint64_t address, uint64_t size_bytes, Where where = kNowhere) {
    AllocatorSegment segment{.address = address, .size_bytes = size_bytes};
    segment.blocks.push_back({.address = address,
                              .size_bytes = size_bytes,
                              .requested_bytes = size_bytes,
                              .stack = stacks_[where],
                              .state = BlockState::kAllocated});
    paper.snapshot.traces[0].segments.push_back(std::move(segment));
  }

  PaperSnapshot paper;
  uint64_t peak_event = 0;

 private:
  void add(Action action, uint64_t address, Where where) {
    AllocatorTrace& trace = paper.snapshot.traces[0];
    trace.events.append({.address = address,
                         .size_bytes = sizes_[address],
                         .time_us = static_cast<int64_t>(trace.events.size()),
                         .stack = stacks_[where],
                         .action = action});
  }
  std::map<Where, uint32_t> stacks_;
  std::map<uint64_t, uint64_t> sizes_;
};

std::map<std::string, uint64_t> by_rule(const std::vector<CategoryHolder>& holders) {
  std::map<std::string, uint64_t> sums;
  for (const CategoryHolder& holder : holders) {
    sums[facts_of(static_cast<SnapshotRule>(holder.rule)).name] += holder.bytes;
  }
  return sums;
}

using Expected = std::map<std::string, uint64_t>;

TEST(SnapshotCategories, OfATrainingLoopAreAllKnownAtThePeak) {
  Training training;
  training.alloc(1, 1000, Training::kSetUp);
  training.step(true);
  training.step(false);
  const DeviceCategories found = training.categories(training.peak_event, 3328);
  ASSERT_TRUE(found.is_known) << found.why_not;
  EXPECT_TRUE(found.is_by_rules);
  EXPECT_EQ(by_rule(found.at_peak), (Expected{{"set_up_with_gradient", 1000},
                                              {"outside_input", 20},
                                              {"forward_freed_in_backward", 300},
                                              {"result_met_backward", 8},
                                              {"backward_kept", 1000},
                                              {"optimizer_kept", 1000}}));
}

TEST(SnapshotCategories, OfASuffixComeFromTheSizesOfGradients) {
  Training training;
  training.leave_live(0x1000, 1000);  // the parameter, its two states, and something else
  training.leave_live(0x2000, 1000);
  training.leave_live(0x3000, 1000);
  training.leave_live(0x4000, 77);
  training.step(false);
  training.step(false);
  const DeviceCategories found = training.categories(training.peak_event, 4405);
  ASSERT_TRUE(found.is_known) << found.why_not;
  EXPECT_EQ(by_rule(found.at_end),
            (Expected{{"size_of_gradient", 1000}, {"size_of_gradient_again", 2000}, {"none", 77}}));
}

TEST(SnapshotCategories, SizesThatDoNotComeOutEvenAreNoStates) {
  Training training;
  for (uint64_t i = 1; i <= 3; ++i) training.leave_live(0x1000 * i, 1000);
  training.alloc(9, 1000, Training::kSetUp);
  training.step(true);  // the state is made here, so nothing of before is one
  training.step(false);
  const DeviceCategories found = training.categories(training.peak_event, 6328);
  ASSERT_TRUE(found.is_known) << found.why_not;
  EXPECT_EQ(by_rule(found.at_end),
            (Expected{{"none", 3000}, {"set_up_with_gradient", 1000}, {"optimizer_kept", 1000}}));
}

/// The step ends with event 6, the next call begins with event 7, zero_grad frees with event 10.
TEST(SnapshotCategories, AGradientIsIdleFromTheOptimizersStepToZeroGrad) {
  for (const bool has_state : {true, false}) {  // without it the step is not seen
    Training training;
    training.alloc(1, 1000, Training::kSetUp);
    training.alloc(3, 300, Training::kForward);
    training.alloc(6, 1000, Training::kBackward);
    training.free(3, Training::kBackward);
    training.alloc(7, 1000, has_state ? Training::kStep : Training::kMain);
    training.alloc(5, 8, Training::kMain);
    training.alloc(8, 16, Training::kForward);
    training.alloc(4, 4000, Training::kForward);
    const uint64_t peak = training.last();
    training.free(6, Training::kZeroGrad);
    training.alloc(6, 1000, Training::kBackward);
    training.free(6, Training::kZeroGrad);
    const DeviceCategories found = training.categories(peak, 7024);
    ASSERT_TRUE(found.is_known) << found.why_not;
    EXPECT_EQ(found.idle_gradients,
              (std::vector<IdleGradient>{{.begin_event = has_state ? 6u : 7u,
                                          .end_event = 10,
                                          .size_bytes = 1000,
                                          .stack = training.stack(Training::kBackward),
                                          .freed_at = training.stack(Training::kZeroGrad)}}))
        << "what the last backward pass made was freed before anything else was made";
    EXPECT_EQ(found.earlier_gradient_bytes, 0u) << "it is known to be idle";
  }
}

TEST(SnapshotCategories, AGradientThatABackwardPassAddsToIsNotIdle) {
  Training training;
  training.alloc(1, 1000, Training::kSetUp);
  training.alloc(6, 1000, Training::kBackward);
  training.alloc(3, 300, Training::kForward);
  training.alloc(8, 500, Training::kBackward);
  training.free(3, Training::kBackward);
  training.alloc(7, 1000, Training::kStep);
  training.free(6, Training::kZeroGrad);
  training.free(8, Training::kZeroGrad);
  const DeviceCategories found = training.categories(training.last() - 4, 3500);
  ASSERT_TRUE(found.is_known) << found.why_not;
  EXPECT_EQ(by_rule(found.at_peak)["freed_by_zero_grad"], 1500u);
  EXPECT_TRUE(found.idle_gradients.empty());
}

/// The gradient of 1000 outlives the step, which makes a state, and the next call of a model.
TEST(SnapshotCategories, AGradientOfAnEarlierStepThatIsNeverFreedIsInDoubt) {
  for (const bool is_in_backward : {true, false}) {
    Training training;
    training.alloc(1, 1000, Training::kSetUp);
    training.alloc(6, 1000, Training::kBackward);
    training.alloc(7, 1000, Training::kStep);
    training.alloc(3, 300, Training::kForward);
    if (is_in_backward) training.alloc(8, 700, Training::kBackward);
    const DeviceCategories found =
        training.categories(training.last(), is_in_backward ? 4000 : 3300);
    ASSERT_TRUE(found.is_known) << found.why_not;
    EXPECT_TRUE(found.idle_gradients.empty());
    EXPECT_EQ(found.earlier_gradient_bytes, 1000u) << "700 are of this step";
  }
}

/// Two passes: with a step in the trace they add to the same gradients, else each may be a step.
TEST(SnapshotCategories, AGradientThatWaitsForItsStepIsNotOfAnEarlierOne) {
  for (const bool has_step : {true, false}) {
    Training training;
    training.alloc(1, 1000, Training::kSetUp);
    training.alloc(6, 1000, Training::kBackward);
    training.alloc(3, 300, Training::kForward);
    const uint64_t peak = training.last();
    training.free(3, Training::kBackward);
    training.alloc(8, 10, Training::kBackward);
    if (has_step) training.alloc(7, 100, Training::kStep);
    training.alloc(9, 10, Training::kForward);
    const DeviceCategories found = training.categories(peak, 2300);
    ASSERT_TRUE(found.is_known) << found.why_not;
    EXPECT_EQ(found.earlier_gradient_bytes, has_step ? 0u : 1000u);
  }
}

TEST(SnapshotCategories, BlocksThatDoNotAddUpToThePeakAreNotTold) {
  Training training;
  training.step(true);
  const DeviceCategories found = training.categories(training.peak_event, 12345);
  EXPECT_FALSE(found.is_known);
  EXPECT_TRUE(found.at_peak.empty());
  EXPECT_EQ(found.why_not,
            "the events contradict each other: its blocks do not add up to the peak");
}

TEST(SnapshotCategories, OfMoreBytesThanAnyMemoryHasAreNotTold) {
  Training training;
  training.alloc(1, uint64_t{1} << 61, Training::kSetUp);
  training.alloc(2, uint64_t{1} << 61, Training::kSetUp);
  EXPECT_TRUE(training.categories(1, uint64_t{1} << 62).is_known);
  training.alloc(3, uint64_t{1} << 63, Training::kSetUp);
  const DeviceCategories found = training.categories(2, uint64_t{3} << 62);
  EXPECT_FALSE(found.is_known);
  EXPECT_EQ(found.why_not, "the sizes in the file exceed any real memory");
}

TEST(SnapshotCategories, OnAutogradsThreadsAreThoseOfEventsWithoutAStack) {
  Training training;
  training.alloc(1, 1000, Training::kSetUp);
  training.alloc(2, 20, Training::kData);
  training.alloc(3, 300, Training::kForward);
  training.alloc(6, 1000, Training::kNowhere);
  training.alloc(7, 40, Training::kNowhere);
  training.free(3, Training::kNowhere);
  training.free(7, Training::kNowhere);
  training.alloc(8, 50, Training::kStep);
  const DeviceCategories found = training.categories(4, 2360);
  ASSERT_TRUE(found.is_known) << found.why_not;
  EXPECT_EQ(by_rule(found.at_peak), (Expected{{"set_up_with_gradient", 1000},
                                              {"outside_input", 20},
                                              {"forward_freed_in_backward", 300},
                                              {"backward_kept_without_stack", 1000},
                                              {"backward_freed_without_stack", 40}}));
}

TEST(SnapshotCategories, OverTimeAreThoseOfEachBlocksWholeLife) {
  Training training;
  training.alloc(1, 1000, Training::kSetUp);
  training.step(true);
  const DeviceCategories found = training.categories(training.peak_event, 2328);
  ASSERT_TRUE(found.is_known) << found.why_not;
  ASSERT_EQ(found.sample_ns, 1024u);  // an event a microsecond, the first sample at the first
  EXPECT_EQ(found.timeline.front()[static_cast<size_t>(Category::kParameter)], 1000);
  EXPECT_EQ(found.timeline.back()[static_cast<size_t>(Category::kOptimizerState)], 1000);
  EXPECT_EQ(found.timeline.back()[static_cast<size_t>(Category::kActivation)], 0);
}

TEST(SnapshotCategories, AnOptimizersAnnotationEndsItsStep) {
  Training training;
  training.alloc(1, 1000, Training::kSetUp);
  training.alloc(7, 1000, Training::kStep);
  EXPECT_EQ(by_rule(training.categories(1, 2000).at_peak),
            (Expected{{"set_up", 1000}, {"none", 1000}}));
  AllocatorSnapshot& snapshot = training.paper.snapshot;
  const uint32_t name = snapshot.tables.strings.intern("Optimizer.step#AdamW.step");
  snapshot.annotations = {{.name = name, .is_begin = true, .device = 0, .time_us = 1},
                          {.name = name, .is_begin = false, .device = 0, .time_us = 9}};
  EXPECT_EQ(by_rule(training.categories(1, 2000).at_peak),
            (Expected{{"set_up", 1000}, {"optimizer_kept", 1000}}));
}

}  // namespace
}  // namespace gpumemprof

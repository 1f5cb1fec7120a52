#include <gtest/gtest.h>

#include "analysis/leaks/leak_period.h"
#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

constexpr uint32_t kRounds = 40;

/// A process of one window an allocation: stacks that allocate in turn, `kRounds` times.
class LeakRounds : public testing::Test {
 protected:
  uint32_t frame(std::string_view file, std::string_view function, uint32_t line) {
    return tables_.stacks.intern_frame(
        {tables_.strings.intern(file), tables_.strings.intern(function), line});
  }

  uint32_t line(uint32_t line) {
    return tables_.stacks.push(0, frame("/srv/me/train.py", "main", line));
  }

  /// Each of `stacks` once a round; of the first one all stays, of the others nothing. Then `tail`
  /// allocations of something else.
  std::optional<Rounds> rounds(const std::vector<uint32_t>& stacks, uint32_t tail = 0) {
    ProcessHistory history;
    for (uint32_t stack : stacks) {
      SiteHistory site{.stack = stack, .alloc_count = kRounds};
      site.live_count = history.sites.empty() ? kRounds : 0;
      history.sites.push_back(site);
    }
    for (uint32_t round = 0; round < kRounds; ++round) {
      for (SiteHistory& site : history.sites) {
        site.cells.push_back({.window = history.windows(), .allocs = 1});
        history.end_ns.push_back(history.windows());
      }
    }
    for (uint32_t i = 0; i < tail; ++i) history.end_ns.push_back(history.windows());
    return find_rounds(history, tables_, 0, &why_);
  }

  Tables tables_;
  std::string why_;
};

TEST_F(LeakRounds, ALoopOfTheProgramThatKeepsAndDropsGoesInRounds) {
  const auto found = rounds({line(7), line(8)});
  ASSERT_TRUE(found) << why_;
  EXPECT_EQ(found->count, kRounds);
  EXPECT_FALSE(found->have_passes);
}

TEST_F(LeakRounds, StacksThatEachAllocateAnotherNumberOfTimesAreComparedByTheirNumbers) {
  constexpr uint32_t kCounts = 100, kStacksOfEach = 40;  // counts of which none divides half
  ProcessHistory history;
  history.end_ns.resize(2);
  for (uint32_t i = 0; i < kCounts * kStacksOfEach; ++i) {
    const uint32_t count = 1000 + 7 * (i / kStacksOfEach);
    SiteHistory site{.stack = line(1 + i), .alloc_count = count};
    site.cells = {{.window = 1, .allocs = count}};
    history.sites.push_back(site);
  }
  uint64_t steps = 0;
  EXPECT_FALSE(find_rounds(history, tables_, 0, &why_, &steps));
  EXPECT_LE(steps, kCounts * kCounts);
}

TEST_F(LeakRounds, DataInAListIsHeldOnce) {
  EXPECT_FALSE(rounds({line(7)}));
  EXPECT_EQ(why_, "nothing else occurs as often as the most frequent allocation");
}

TEST_F(LeakRounds, WhatEndsBeforeTheProcessDoesIsNoLoopOfItsLife) {
  // 80 windows and 4 more: one in 16 may come after the last round, or two rounds.
  EXPECT_TRUE(rounds({line(7), line(8)}, 4));
  EXPECT_FALSE(rounds({line(7), line(8)}, 40));
  EXPECT_EQ(why_, "nothing happens 12 times or more until the end of the process");
}

TEST_F(LeakRounds, ALoopOfALibraryIsOneCall) {
  const uint32_t call = line(7);
  const std::string_view file = "/usr/lib/python3/dist-packages/lm/generate.py";
  const uint32_t first = tables_.stacks.push(call, frame(file, "generate", 20));
  const uint32_t second = tables_.stacks.push(call, frame(file, "generate", 21));
  EXPECT_FALSE(rounds({first, second}));
  EXPECT_EQ(why_, "the repetition is inside a library function");
  // A line of the program's own beside it: the loop is around both.
  EXPECT_TRUE(rounds({first, line(8)}));
}

TEST_F(LeakRounds, ARoundOfKerasFitIsAStepAndWhatRepeatsWithinAStepIsNone) {
  const std::string packages = "/v/lib/python3.11/site-packages/";
  for (const std::string trainer : {"keras/src/backend/tensorflow/trainer.py",
                                    "tf_keras/src/engine/training.py"}) {
    const auto fit = [&](uint32_t at) {
      return tables_.stacks.push(line(7), frame(packages + trainer, "TensorFlowTrainer.fit", at));
    };
    const uint32_t step = tables_.stacks.push(
        fit(399), frame(packages + trainer, "TensorFlowTrainer.train_step", 81));
    // The next batch, and the step with it.
    EXPECT_TRUE(rounds({step, fit(397)})) << why_;
    const auto apply = [&](uint32_t at) {
      return tables_.stacks.push(
          step, frame(packages + "keras/src/optimizers/base_optimizer.py", "apply", at));
    };
    EXPECT_FALSE(rounds({apply(526), apply(527)})) << "once for each variable of a step";
    EXPECT_EQ(why_, "the repetition is inside a library function");
  }
}

TEST_F(LeakRounds, OperationsOfOneLineGoThroughTheFrameworksWrappersWhichAreNoLoop) {
  const std::string packages = "/v/lib/python3.11/site-packages/";
  const auto operations = [&](const std::string& wrapper, const std::string& file) {
    const uint32_t call = tables_.stacks.push(line(7), frame(packages + wrapper, "wrapper", 142));
    return std::vector<uint32_t>{
        tables_.stacks.push(call, frame(packages + file, "mul", 6830)),
        tables_.stacks.push(call, frame(packages + file, "add", 477))};
  };
  EXPECT_TRUE(rounds(operations("tensorflow/python/util/traceback_utils.py",
                                "tensorflow/python/ops/gen_math_ops.py")))
      << why_;
  EXPECT_TRUE(rounds(operations("jax/_src/numpy/ufunc_api.py", "jax/_src/lax/lax.py"))) << why_;
  for (const char* loop : {"tensorflow/python/ops/while_loop.py", "jax/_src/tree_util.py",
                           "jax/_src/lax/control_flow/loops.py"}) {
    EXPECT_FALSE(rounds(operations(loop, "numpy/made.py")));
    EXPECT_EQ(why_, "the repetition is inside a library function");
  }
}

TEST_F(LeakRounds, ALoopWithinACallOfAModuleIsOnePass) {
  const uint32_t call = tables_.stacks.push(
      line(7), frame("/site-packages/torch/nn/modules/module.py", "Module._call_impl", 1775));
  const uint32_t forward = tables_.stacks.push(call, frame("/srv/me/net.py", "forward", 5));
  const uint32_t other = tables_.stacks.push(call, frame("/srv/me/net.py", "forward", 6));
  EXPECT_FALSE(rounds({forward, other}));
  EXPECT_EQ(why_, "the repetition is inside one module call");
}

TEST_F(LeakRounds, RoundsInWhichAModuleIsCalledHavePasses) {
  const uint32_t called = tables_.stacks.push(line(7), frame(kModuleFile, "model.head", 0));
  const auto found = rounds({line(8), called});
  ASSERT_TRUE(found) << why_;
  EXPECT_TRUE(found->have_passes);
}

TEST_F(LeakRounds, RoundsThatTrainALayerOfTensorFlowHavePasses) {
  tables_.devices.push_back({.type = kTensorflowCpu});
  const auto have_passes = [&](std::string_view operation) {
    const uint32_t made = tables_.stacks.push(line(7), frame(kOperationFile, operation, 0));
    const auto found = rounds({line(8), made});
    return found && found->have_passes;
  };
  EXPECT_TRUE(have_passes("StatefulPartitionedCall/gradient_tape/sequential_1/dense_1/MatMul"));
  EXPECT_TRUE(have_passes("StatefulPartitionedCall/sequential_1/dense_1/MatMul"));
  EXPECT_FALSE(have_passes("AddV2")) << "an eager operation, of no layer";
  EXPECT_FALSE(have_passes("RangeDataset"));
}

/// `models` take each other's place, each called `calls` times: one stack each, on one line; and an
/// input for each call.
ProcessHistory models_in_turn(Tables* tables, uint32_t line, uint32_t models, uint32_t calls) {
  ProcessHistory history;
  SiteHistory input{.stack = line, .alloc_count = uint64_t{models} * calls, .first_alloc = 1};
  for (uint32_t model = 0; model < models; ++model) {
    const uint32_t name = tables->strings.intern("Linear#" + std::to_string(model + 1));
    const uint32_t label = tables->stacks.intern_frame({tables->strings.intern(kModuleFile), name});
    SiteHistory called{.stack = tables->stacks.push(line, label), .alloc_count = calls};
    for (uint32_t call = 0; call < calls; ++call) {
      input.cells.push_back({.window = history.windows(), .allocs = 1});
      history.end_ns.push_back(history.windows());
      called.cells.push_back({.window = history.windows(), .allocs = 1});
      history.end_ns.push_back(history.windows());
      called.last_alloc = history.windows();
      if (call == 0) called.first_alloc = called.last_alloc;
    }
    history.sites.push_back(called);
  }
  input.last_alloc = history.windows() - 1;
  history.sites.push_back(input);
  return history;
}

TEST_F(LeakRounds, ModelsThatTakeEachOthersPlaceAreCalledInOneLoop) {
  const auto found = find_rounds(models_in_turn(&tables_, line(7), 40, 3), tables_, 0, &why_);
  ASSERT_TRUE(found) << why_;
  EXPECT_EQ(found->count, 120u) << "40 models, each called 3 times";
  EXPECT_EQ(found->allocs_a_round, 1u);
  EXPECT_TRUE(found->have_passes);
}

TEST_F(LeakRounds, LayersThatAreCalledOneByOneAreNoLoop) {
  EXPECT_FALSE(find_rounds(models_in_turn(&tables_, line(7), 40, 1), tables_, 0, &why_));
  EXPECT_EQ(why_, "nothing else occurs as often as the most frequent allocation");
}

/// One stack that makes a row and joins it with the table, `kRounds` times; `kept` of it stays.
ProcessHistory joins(uint32_t stack, uint64_t kept) {
  ProcessHistory history;
  SiteHistory site{.stack = stack, .alloc_count = 2 * kRounds};
  site.live_count = kept, site.larger_count = kRounds;
  site.first_alloc = 1, site.last_alloc = site.last_larger = 2 * kRounds;
  for (uint32_t window = 0; window < 2 * kRounds; ++window) {
    site.cells.push_back({.window = window, .allocs = 1});
    history.end_ns.push_back(window);
  }
  history.sites.push_back(site);
  return history;
}

TEST_F(LeakRounds, ALineThatJoinsWhatItHasWithMoreGoesRoundOncePerLargerBlock) {
  const auto found = find_rounds(joins(line(7), 3), tables_, 0, &why_);
  ASSERT_TRUE(found) << why_;
  EXPECT_EQ(found->count, kRounds);
  EXPECT_EQ(found->allocs_a_round, 2);
  // Where all of it stays, it is data of rising length in a list.
  EXPECT_FALSE(find_rounds(joins(line(7), 2 * kRounds), tables_, 0, &why_));
}

TEST_F(LeakRounds, BlocksThatGrewInThePastAloneAreNotJoined) {
  ProcessHistory history = joins(line(7), 3);
  history.sites[0].last_larger = kRounds;  // half of its life ago
  history.sites.push_back(history.sites[0]);
  history.sites[1].stack = line(8);
  const auto found = find_rounds(history, tables_, 0, &why_);
  ASSERT_TRUE(found) << why_;
  EXPECT_EQ(found->count, 2 * kRounds) << "each block is a round";
}

TEST_F(LeakRounds, ALineThatMakesSeveralSizesGoesRoundOnceForItsLargest) {
  // Four blocks a round, the fourth the largest, beside a line that makes one.
  ProcessHistory history;
  SiteHistory four{.stack = line(7), .alloc_count = 4 * kRounds};
  SiteHistory one{.stack = line(8), .alloc_count = kRounds};
  four.largest_count = one.largest_count = kRounds;
  for (uint32_t round = 0; round < kRounds; ++round) {
    four.cells.push_back({.window = history.windows(), .allocs = 4});
    history.end_ns.push_back(history.windows());
    one.cells.push_back({.window = history.windows(), .allocs = 1});
    history.end_ns.push_back(history.windows());
  }
  history.sites = {four, four, one};
  history.sites[1].stack = line(9);
  auto found = find_rounds(history, tables_, 0, &why_);
  ASSERT_TRUE(found) << why_;
  EXPECT_EQ(found->count, kRounds);
  // All of one size: each block may be a round, and the other line beats every fourth time.
  for (SiteHistory& site : history.sites) site.largest_count = site.alloc_count;
  found = find_rounds(history, tables_, 0, &why_);
  ASSERT_TRUE(found) << why_;
  EXPECT_EQ(found->count, 4 * kRounds);
}

TEST_F(LeakRounds, ALineThatMakesTwoBlocksInACallDoesNotHalveARoundOfMoreStacks) {
  const auto count = [&](uint32_t stacks_once) {
    ProcessHistory history;
    history.sites.push_back({.stack = line(6), .alloc_count = 2 * kRounds, .live_count = 80});
    history.sites.push_back({.stack = line(7), .alloc_count = 4 * kRounds});
    for (uint32_t i = 0; i < stacks_once; ++i) {
      history.sites.push_back({.stack = line(9 + i), .alloc_count = kRounds});
    }
    for (uint32_t round = 0; round < kRounds; ++round) {
      for (SiteHistory& site : history.sites) {
        const auto allocs = static_cast<uint32_t>(site.alloc_count / kRounds);
        site.cells.push_back({.window = history.windows(), .allocs = allocs});
        history.end_ns.push_back(history.windows());
      }
    }
    const auto found = find_rounds(history, tables_, 0, &why_);
    return found ? found->count : 0;
  };
  // Half of all stacks allocate a whole number of times in each of 80 rounds.
  EXPECT_EQ(count(2), kRounds) << "two stacks once in 40 rounds, one in 80";
  EXPECT_EQ(count(1), 2 * kRounds) << "it may be every other round";
}

/// `calls` of a module: in each of them one of its stacks makes two blocks, the others one.
ProcessHistory calls_of(uint32_t twice, const std::vector<uint32_t>& once, uint32_t calls) {
  ProcessHistory history;
  history.sites.push_back({.stack = twice, .alloc_count = 2 * calls, .live_count = calls});
  for (uint32_t stack : once) history.sites.push_back({.stack = stack, .alloc_count = calls});
  for (uint32_t call = 0; call < calls; ++call) {
    for (SiteHistory& site : history.sites) {
      const auto allocs = static_cast<uint32_t>(site.alloc_count / calls);
      site.cells.push_back({.window = history.windows(), .allocs = allocs});
      history.end_ns.push_back(history.windows());
    }
  }
  return history;
}

TEST_F(LeakRounds, AStackThatAllocatesTwiceInACallDoesNotHalveARoundOfFewCalls) {
  const uint32_t call = tables_.stacks.push(
      line(7), frame("/site-packages/torch/nn/modules/module.py", "Module._call_impl", 1775));
  const auto within = [&](std::string_view module) {
    return tables_.stacks.push(call, frame(kModuleFile, module, 0));
  };
  const std::vector<uint32_t> once = {within("norm"), within("mlp"), within("head")};
  // Another line drops what it makes, twice a call too: it is a loop.
  const auto of = [&](uint32_t calls) {
    ProcessHistory history = calls_of(within("attention"), once, calls);
    SiteHistory other = history.sites[0];
    other.stack = line(8), other.live_count = 0;
    history.sites.push_back(other);
    return find_rounds(history, tables_, 0, &why_);
  };
  const auto found = of(8);
  ASSERT_TRUE(found) << why_;
  EXPECT_EQ(found->count, 8u) << "calls, not its 16 blocks";
  EXPECT_EQ(found->allocs_a_round, 1u);
  EXPECT_TRUE(found->have_passes);
  EXPECT_EQ(of(20)->count, 20u);
  EXPECT_FALSE(of(7)) << "14 blocks, of too few calls";
  EXPECT_EQ(why_, "the line of the repeated allocations is called fewer than 8 times");
}

TEST_F(LeakRounds, LinesThatAllocateTwiceInARoundDoNotHalveIt) {
  ProcessHistory history = joins(line(7), 3);
  history.sites.push_back(joins(line(8), 3).sites[0]);
  SiteHistory once{.stack = line(9), .alloc_count = kRounds};
  for (uint32_t window = 0; window < 2 * kRounds; window += 2) {
    once.cells.push_back({.window = window, .allocs = 1});
  }
  history.sites.push_back(once);
  const auto found = find_rounds(history, tables_, 0, &why_);
  ASSERT_TRUE(found) << why_;
  EXPECT_EQ(found->count, kRounds);
}

TEST_F(LeakRounds, ALineOfALibraryThatJoinsIsOneCall) {
  const uint32_t call = tables_.stacks.push(
      line(7), frame("/usr/lib/python3/dist-packages/lm/generate.py", "generate", 20));
  EXPECT_FALSE(find_rounds(joins(call, 3), tables_, 0, &why_));
  EXPECT_EQ(why_, "the repetition is inside a library function");
}

TEST_F(LeakRounds, AnOperationThatIsWrittenInPythonIsNoLoopOfALibrary) {
  const std::string_view file = "/site-packages/torch/nn/functional.py";
  const uint32_t pad = tables_.stacks.push(line(7), frame(file, "pad", 5270));
  EXPECT_TRUE(find_rounds(joins(pad, 3), tables_, 0, &why_)) << why_;
}

TEST_F(LeakRounds, AWorkersLifeIsItsLoop) {
  const uint32_t run = tables_.stacks.push(
      0, frame("/usr/lib/python3.11/multiprocessing/process.py", "BaseProcess.run", 108));
  const auto found = rounds({tables_.stacks.push(run, frame("/srv/me/work.py", "serve", 4))});
  ASSERT_TRUE(found) << why_;
  EXPECT_TRUE(found->in_worker);
  // A list that one expression fills is no loop of it.
  EXPECT_FALSE(rounds({tables_.stacks.push(run, frame("/srv/me/work.py", "<listcomp>", 4))}));
  EXPECT_EQ(why_, "nothing else occurs as often as the most frequent allocation");
}

}  // namespace
}  // namespace gpumemprof

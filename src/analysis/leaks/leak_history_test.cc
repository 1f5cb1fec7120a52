#include "analysis/leaks/leak_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "analysis/leaks/leaks.h"
#include "trace/last_frees.h"
#include "trace/live_state_apply.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

struct Feed : LiveObserver {
  LeakGatherer* gatherer;
  LastFrees<LiveBlock> last_frees;
  void on_alloc(size_t i, uint16_t device, const DeviceState&) {
    last_frees.on_alloc(0);
    gatherer->on_alloc(i, device);
  }
  void on_free(size_t, uint16_t device, const DeviceState&, const LiveBlock& block) {
    last_frees.on_free(device, 0, block);
    gatherer->on_free(device, block);
  }
  std::vector<ProcessHistory> finish(const LiveState& state) const {
    return gatherer->finish(state, [this](uint16_t device) { return last_frees.of(device, 0); });
  }
};

/// A program of one process: `keeps` bytes a step on line 7, one block that comes and goes on
/// line 8, and at the end all of it is freed, as a program does that takes itself down.
class LeakHistory : public testing::Test {
 protected:
  LeakHistory() {
    tables_.processes.resize(1);
    tables_.threads.resize(1);
    tables_.devices.push_back({.type = 0, .size_is_requested = true});
    const uint32_t file = tables_.strings.intern("/srv/me/train.py");
    const uint32_t function = tables_.strings.intern("main");
    leak_ = tables_.stacks.push(0, tables_.stacks.intern_frame({file, function, 7}));
    churn_ = tables_.stacks.push(0, tables_.stacks.intern_frame({file, function, 8}));
  }

  void step(uint64_t keeps) {
    append(&events_, {.time_ns = ++time_, .address = 1, .size_bytes = 5000, .stack = churn_});
    append(&events_,
           {.time_ns = ++time_, .address = 1000 + time_, .size_bytes = keeps, .stack = leak_});
    kept_.push_back(1000 + time_);
    append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = 1});
  }
  void take_down() {
    for (uint64_t address : kept_) {
      append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = address});
    }
  }
  std::vector<ProcessHistory> histories() {
    LeakGatherer gatherer;
    Feed feed;
    feed.gatherer = &gatherer;
    LiveState state;
    gatherer.begin_batch(events_, tables_, state);
    state.apply_observed(events_, feed);
    gatherer.end_batch();
    return feed.finish(state);
  }

  Tables tables_;
  EventBatch events_;
  std::vector<uint64_t> kept_;
  uint64_t time_ = 0;
  uint32_t leak_ = 0, churn_ = 0;
};

TEST_F(LeakHistory, WhatIsFreedAfterTheLastAllocationIsStillHeld) {
  for (int i = 0; i < 50; ++i) step(64);
  take_down();
  const auto all = histories();
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].allocs, 100);
  ASSERT_EQ(all[0].sites.size(), 2);
  EXPECT_EQ(all[0].sites[1].live_bytes, 50 * 64);
  EXPECT_EQ(all[0].sites[1].live_count, 50);
  EXPECT_EQ(all[0].kept.size(), 51);  // the block of line 8 was freed after the last one, too
}

TEST_F(LeakHistory, WhatIsKeptSinceAMomentIsSummedByStack) {
  for (int i = 0; i < 50; ++i) step(64);  // three events each: what is kept is made at 2, 5, 8, …
  const std::vector<ProcessHistory> all = histories();
  const std::vector<Holder> since = kept_since(all.at(0), 0, 122);
  const auto kept = std::ranges::find(since, leak_, &Holder::stack);
  ASSERT_NE(kept, since.end());
  EXPECT_EQ(kept->count, 10u) << "of steps 41 to 50";
  EXPECT_EQ(kept->bytes, 640u);
  EXPECT_TRUE(kept_since(all.at(0), 1, 0).empty()) << "another device";
}

TEST_F(LeakHistory, WindowsAreMergedAndLoseNoAllocationAndNoFloor) {
  constexpr int kSteps = 3000;
  for (int i = 0; i < kSteps; ++i) step(10);
  const auto all = histories();
  ASSERT_EQ(all.size(), 1);
  EXPECT_LE(all[0].windows(), LeakGatherer::kMostWindows);
  for (const SiteHistory& site : all[0].sites) {
    uint64_t allocs = 0;
    for (const HeldCell& cell : site.cells) {
      allocs += cell.allocs;
      // The first allocation of a window finds what all windows before have left.
      if (site.stack == leak_) {
        const uint64_t before = cell.window * all[0].allocs_a_window / 2;
        EXPECT_EQ(cell.floor_bytes, 10 * before);
      } else {
        EXPECT_EQ(cell.floor_bytes, 0);
      }
    }
    EXPECT_EQ(allocs, kSteps);
  }
}

TEST_F(LeakHistory, WindowsAddUpToAllBytesThatWereAllocated) {
  for (int i = 0; i < 2000; ++i) step(64);
  const std::vector<ProcessHistory> history = histories();
  for (const SiteHistory& site : history.at(0).sites) {
    uint64_t bytes = 0;
    for (const HeldCell& cell : site.cells) bytes += cell.alloc_bytes;
    EXPECT_EQ(bytes, site.alloc_bytes);
    EXPECT_EQ(bytes, site.stack == leak_ ? 2000 * 64 : 2000 * 5000);
  }
}

TEST_F(LeakHistory, TheLineThatKeepsIsFoundWithItsBytesAStep) {
  for (int i = 0; i < 100; ++i) step(48);
  take_down();
  const auto leaks = find_leaks(histories(), tables_);
  ASSERT_EQ(leaks.size(), 1);
  EXPECT_EQ(leaks[0].node, leak_);
  EXPECT_EQ(leaks[0].bytes_a_step, 48);
  EXPECT_EQ(leaks[0].live_bytes, 4800);
  EXPECT_EQ(leaks[0].survivors_a_step, 1);
}

TEST_F(LeakHistory, FewStepsKeepAWholeNumberOfBlocksEach) {
  for (int i = 0; i < 12; ++i) step(48);
  const auto leaks = find_leaks(histories(), tables_);
  ASSERT_EQ(leaks.size(), 1);
  EXPECT_EQ(leaks[0].survivors_a_step, 1) << "8 blocks in the 8 steps after a warm-up of 4";
}

TEST_F(LeakHistory, BlocksAStepTimesTheirSizeAreTheBytesAStep) {
  for (int i = 0; i < 50; ++i) step(48);
  for (size_t i = 15; i < 25; ++i) {  // older than the warm-up of 25 steps
    append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = kept_[i]});
  }
  for (int i = 0; i < 50; ++i) step(48);
  const auto leaks = find_leaks(histories(), tables_);
  ASSERT_EQ(leaks.size(), 1);
  EXPECT_LT(leaks[0].bytes_a_step, 48);
  EXPECT_DOUBLE_EQ(48 * leaks[0].survivors_a_step, leaks[0].bytes_a_step);
}

TEST_F(LeakHistory, ALossOfFourBytesIsFoundOnTheStackThatMakesLargeBlocksThatGo) {
  for (uint64_t i = 0; i < 80; ++i) {
    append(&events_, {.time_ns = ++time_, .address = 2, .size_bytes = 256'000, .stack = leak_});
    append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = 2});
    step(4);
  }
  const std::vector<ProcessHistory> history = histories();
  const auto site = std::ranges::find(history.at(0).sites, leak_, &SiteHistory::stack);
  ASSERT_NE(site, history[0].sites.end());
  EXPECT_EQ(site->median_live_bytes, 4);
  const std::vector<Leak> leaks = find_leaks(history, tables_);
  ASSERT_EQ(leaks.size(), 1);
  EXPECT_EQ(leaks[0].bytes_a_step, 4);
}

/// A line calls a tf.function, which keeps 256 bytes of each graph; its first `traced` calls build one.
TEST_F(LeakHistory, AFunctionIsRetracedWhereGraphsAreBuiltAsOftenAsTheLineKeepsMore) {
  tables_.devices[0].type = kTensorflowCpu;
  const auto within = [&](std::string_view file, std::string_view function) {
    return tables_.stacks.push(
        leak_, tables_.stacks.intern_frame(
                   {tables_.strings.intern("/v/lib/python3.11/site-packages/tensorflow/python/" +
                                           std::string(file)),
                    tables_.strings.intern(function), 139}));
  };
  const uint32_t call =
      within("eager/polymorphic_function/tracing_compilation.py", "call_function");
  const uint32_t build = within("framework/func_graph.py", "func_graph_from_py_func");
  const auto leaks_of = [&](uint64_t traced) {
    events_.clear(), kept_.clear();
    for (uint64_t i = 0; i < 40; ++i) {
      if (i < traced) {
        append(&events_, {.time_ns = ++time_, .address = 2, .size_bytes = 8, .stack = build});
        append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = 2});
      }
      append(&events_, {.time_ns = ++time_, .address = 1, .size_bytes = 5000, .stack = churn_});
      append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = 1});
      ++time_;
      append(&events_,
             {.time_ns = time_, .address = 1000 + time_, .size_bytes = 256, .stack = call});
    }
    return find_leaks(histories(), tables_);
  };
  const auto retraced = leaks_of(40);
  ASSERT_EQ(retraced.size(), 1);
  EXPECT_EQ(retraced[0].bytes_a_step, 256);
  EXPECT_TRUE(retraced[0].is_retraced);
  const auto traced_once = leaks_of(1);
  ASSERT_EQ(traced_once.size(), 1);
  EXPECT_FALSE(traced_once[0].is_retraced) << "running a function is not tracing it";
}

/// A training loop of JAX, on threads of its own: three workspaces that go, new weights that replace
/// the old ones, and activations that a list keeps.
TEST_F(LeakHistory, WhatJaxMakesWithoutStacksIsToldBySizeAndHasItsBytesARound) {
  constexpr uint64_t kRounds = 30, kWorkspace = 74'176, kWeights = 1 << 20, kActivations = 2 << 20;
  tables_.devices[0].type = kJaxCpu;
  const auto alloc = [&](uint64_t address, uint64_t size_bytes) {
    append(&events_, {.time_ns = ++time_, .address = address, .size_bytes = size_bytes});
  };
  const auto free = [&](uint64_t address) {
    append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = address});
  };
  for (uint64_t i = 0; i < kRounds; ++i) {
    for (uint64_t address : {1, 2, 3}) alloc(address, kWorkspace);
    for (uint64_t address : {1, 2, 3}) free(address);
    alloc(100 + i % 2, kWeights);
    alloc(1000 + i, kActivations);
    free(101 - i % 2);
  }
  const std::vector<Leak> leaks = find_leaks(histories(), tables_);
  ASSERT_EQ(leaks.size(), 1);
  EXPECT_EQ(leaks[0].node, 0);
  EXPECT_EQ(leaks[0].bytes_a_step, kActivations);
  ASSERT_EQ(leaks[0].stacks.size(), 1);
  EXPECT_EQ(leaks[0].stacks[0].told_by_bytes, kActivations);
  EXPECT_EQ(leaks[0].stacks[0].survivor_bytes, kActivations * leaks[0].stacks[0].survivors);
  EXPECT_EQ(leaks[0].live_bytes, kActivations * kRounds);
}

TEST_F(LeakHistory, SizesWithoutAStackBeyondTheMostAreOneSite) {
  tables_.devices[0].type = kJaxCpu;
  constexpr uint64_t kSizes = LeakGatherer::kMostSizes + 5;
  for (uint64_t i = 1; i <= kSizes; ++i) {
    append(&events_, {.time_ns = ++time_, .address = i, .size_bytes = i});
  }
  const std::vector<ProcessHistory> all = histories();
  ASSERT_EQ(all[0].sites.size(), LeakGatherer::kMostSizes + 1);
  EXPECT_EQ(all[0].sites.back().told_by_bytes, 0);
  EXPECT_EQ(all[0].sites.back().live_count, 5);
  uint64_t bytes = 0;
  for (const SiteHistory& site : all[0].sites) bytes += site.live_bytes;
  EXPECT_EQ(bytes, kSizes * (kSizes + 1) / 2);
}

TEST_F(LeakHistory, ABlockThatALargerOneReplacesHasNoOldSurvivor) {
  for (uint64_t i = 0; i < 80; ++i) {
    append(&events_, {.time_ns = ++time_, .address = 1, .size_bytes = 5000, .stack = churn_});
    const uint64_t now = 100 + i % 2, before = 101 - i % 2;
    append(&events_, {.time_ns = ++time_, .address = now, .size_bytes = 64 * i, .stack = leak_});
    append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = before});
    append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = 1});
  }
  const std::vector<Leak> replaced = find_leaks(histories(), tables_);
  ASSERT_EQ(replaced.size(), 1);
  EXPECT_EQ(replaced[0].stacks[0].old_survivors, 0);
  // What was freed after the last allocation counts: it may be the end of the program.
  EXPECT_EQ(replaced[0].stacks[0].survivors, 2);
  EXPECT_EQ(replaced[0].stacks[0].survivor_bytes, 64 * (78 + 79));
  EXPECT_FALSE(replaced[0].is_training);
}

TEST_F(LeakHistory, WhatEachStepKeepsHasOldSurvivors) {
  for (int i = 0; i < 80; ++i) step(64);
  const std::vector<Leak> kept = find_leaks(histories(), tables_);
  ASSERT_EQ(kept.size(), 1);
  const LeakStack& stack = kept[0].stacks[0];
  EXPECT_EQ(stack.survivor_bytes, 64 * stack.survivors);
  // The last 80 / 8 steps are no age; windows begin where they begin.
  EXPECT_NEAR(static_cast<double>(stack.survivors - stack.old_survivors), 80 / 8, 1);
}

TEST_F(LeakHistory, MarksOfStepsAreCountedWhereTheyStand) {
  for (int i = 0; i < 40; ++i) {
    step(48);
    events_.marks.push_back({.before_event = static_cast<uint32_t>(events_.size())});
  }
  step(48);
  const auto all = histories();
  uint64_t marked = 0;
  for (uint32_t steps : all[0].steps) marked += steps;
  EXPECT_EQ(marked, 40);
  const Period period = find_periods(all[0], tables_).front();
  EXPECT_EQ(period.from, Period::From::kMarks);
  EXPECT_EQ(period.steps(), 40);
}

TEST_F(LeakHistory, WithoutMarksTheStepsAreTheRoundsOfTheLoop) {
  for (int i = 0; i < 40; ++i) step(48);
  const Period period = find_periods(histories()[0], tables_).front();
  EXPECT_EQ(period.from, Period::From::kRounds);
  EXPECT_EQ(period.steps(), 40);
}

TEST_F(LeakHistory, MarksAfterTheLastEventOfABatchCount) {
  for (int i = 0; i < 20; ++i) step(48);
  events_.marks.push_back({.before_event = static_cast<uint32_t>(events_.size())});
  EXPECT_EQ(histories()[0].steps.back(), 1u);
}

TEST_F(LeakHistory, AFewLongStepsGoByTheRoundsWithinThem) {
  for (int i = 0; i < 42; ++i) {
    step(48);
    if (i % 6 == 5) events_.marks.push_back({.before_event = static_cast<uint32_t>(events_.size())});
  }
  const Period period = find_periods(histories()[0], tables_).front();
  EXPECT_EQ(period.from, Period::From::kRounds);
  EXPECT_EQ(period.steps(), 42);
}

TEST_F(LeakHistory, FewStepsWithoutALoopAreTooFew) {
  for (int i = 0; i < 7; ++i) {
    step(48);
    events_.marks.push_back({.before_event = static_cast<uint32_t>(events_.size())});
  }
  const Period period = find_periods(histories()[0], tables_).front();
  EXPECT_EQ(period.from, Period::From::kNothing);
  EXPECT_EQ(period.why_none, "the program has 7 steps, fewer than 8");
}

/// Of a program whose line 7 keeps something in each step and something else on a new stack.
class LeakOfOneLine : public LeakHistory {
 protected:
  uint32_t in_torch(uint32_t line, const char* file, const std::string& function) {
    const std::string path = "/opt/site-packages/torch/" + std::string(file);
    return tables_.stacks.push(
        line, tables_.stacks.intern_frame(
                  {tables_.strings.intern(path), tables_.strings.intern(function), 1}));
  }
  void keep(uint64_t size_bytes, uint32_t stack) {
    append(&events_, {.time_ns = ++time_, .address = 50'000'000 + time_, .size_bytes = size_bytes,
                      .stack = stack});
  }
  void end_step() {
    events_.marks.push_back({.before_event = static_cast<uint32_t>(events_.size())});
  }
};

TEST_F(LeakOfOneLine, WhatNewStacksKeepIsAddedToWhatOneStackKeeps) {
  for (int i = 0; i < 60; ++i) {
    step(8);
    keep(100, in_torch(leak_, "autograd/graph.py", "of_model_" + std::to_string(i)));
    end_step();
  }
  const std::vector<Leak> leaks = find_leaks(histories(), tables_);
  ASSERT_EQ(leaks.size(), 1);
  EXPECT_NEAR(leaks[0].bytes_a_step, 8 + 100, 1e-6);
  EXPECT_EQ(leaks[0].live_bytes, 60 * (8 + 100));
}

TEST_F(LeakOfOneLine, StateOfModelsThatAreKeptIsOfTheLineThatKeepsSomethingElse) {
  const uint32_t file = tables_.strings.intern("/srv/me/train.py");
  const uint32_t makes = tables_.stacks.push(
      0, tables_.stacks.intern_frame({file, tables_.strings.intern("main"), 6}));
  const uint32_t weight = in_torch(makes, "nn/modules/linear.py", "Linear.__init__");
  const uint32_t state = in_torch(leak_, "optim/optimizer.py", "wrapper");
  for (int i = 0; i < 60; ++i) {
    keep(100, weight);
    step(8);
    keep(200, state);
    events_.marks.push_back(
        {.before_event = static_cast<uint32_t>(events_.size()),
         .kind = MarkKind::kRole,
         .text = tables_.strings.intern("exp_avg of Linear#" + std::to_string(i) + ".weight"),
         .address = 50'000'000 + time_,
         .value = static_cast<uint64_t>(StorageRole::kOptimizerState)});
    end_step();
  }
  const std::vector<Leak> leaks = find_leaks(histories(), tables_);
  ASSERT_EQ(leaks.size(), 2);
  EXPECT_EQ(leaks[0].node, leak_);
  EXPECT_NEAR(leaks[0].bytes_a_step, 8 + 200, 1e-6);
  EXPECT_EQ(leaks[1].node, makes);
  EXPECT_NEAR(leaks[1].bytes_a_step, 100, 1e-6);
}

/// Steps that keep nothing, then rounds that keep `keeps` bytes each.
class LeakAfterSteps : public LeakHistory {
 protected:
  void train(int steps) {
    for (int i = 0; i < steps; ++i) {
      const uint64_t address = 1000 + time_ + 2;
      step(48);
      append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = address});
      kept_.clear();
      events_.marks.push_back({.before_event = static_cast<uint32_t>(events_.size())});
    }
  }
  void evaluate(int rounds, uint64_t keeps) {
    for (int i = 0; i < rounds; ++i) {
      append(&events_, {.time_ns = ++time_, .address = 1, .size_bytes = 5000, .stack = output_});
      append(&events_, {.time_ns = ++time_, .address = 10'000'000 + time_, .size_bytes = keeps,
                        .stack = kept_output_});
      kept_.push_back(10'000'000 + time_);
      append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = 1});
    }
  }
  void drop_kept() {
    take_down();
    kept_.clear();
  }
  uint32_t line(uint32_t number) {
    return tables_.stacks.push(
        0, tables_.stacks.intern_frame({tables_.strings.intern("/srv/me/train.py"),
                                        tables_.strings.intern("evaluate"), number}));
  }

  uint32_t output_ = line(20), kept_output_ = line(21);
};

TEST_F(LeakAfterSteps, RoundsAfterTheLastStepAreJudgedByThemselves) {
  train(60);
  evaluate(40, 64);
  take_down();
  const std::vector<Leak> leaks = find_leaks(histories(), tables_);
  ASSERT_EQ(leaks.size(), 1);
  EXPECT_EQ(leaks[0].node, kept_output_);
  EXPECT_EQ(leaks[0].bytes_a_step, 64);
  EXPECT_EQ(leaks[0].live_bytes, 40 * 64);
  EXPECT_EQ(leaks[0].period_from, Period::From::kRounds);
  EXPECT_TRUE(leaks[0].is_after_steps);
}

TEST_F(LeakAfterSteps, AFewRoundsAfterTheLastStepAreNoLoopOfTheirOwn) {
  train(60);
  evaluate(20, 64);
  EXPECT_TRUE(find_leaks(histories(), tables_).empty());
}

TEST_F(LeakAfterSteps, WhatTheLineGaveBackAfterAnEarlierEvaluationItGivesBackAgain) {
  for (int epoch = 0; epoch < 3; ++epoch) {
    train(60);
    evaluate(40, 64);
    if (epoch < 2) drop_kept();
  }
  EXPECT_TRUE(find_leaks(histories(), tables_).empty());
}

TEST_F(LeakHistory, ABlockThatALargerOneReplacesGrowsWhereTheCopyIsTheLastThingThatHappens) {
  for (uint64_t i = 1; i <= 300; ++i) {
    append(&events_, {.time_ns = ++time_, .address = 1, .size_bytes = 256, .stack = churn_});
    const uint64_t now = 100 + i % 2, before = 101 - i % 2;
    append(&events_, {.time_ns = ++time_, .address = now, .size_bytes = 256 * i, .stack = leak_});
    append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = before});
    append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = 1});
  }
  const std::vector<Leak> leaks = find_leaks(histories(), tables_);
  ASSERT_EQ(leaks.size(), 1);
  EXPECT_EQ(leaks[0].bytes_a_step, 256);
}

TEST_F(LeakHistory, ATableThatIsJoinedInOneLineGrowsOncePerRoundAndIsUsedWhereSomethingNewComesAfter) {
  for (uint64_t i = 1; i <= 300; ++i) {
    append(&events_, {.time_ns = ++time_, .address = 1, .size_bytes = 256, .stack = leak_});
    const uint64_t now = 100 + i % 2, before = 101 - i % 2;
    append(&events_, {.time_ns = ++time_, .address = now, .size_bytes = 256 * i, .stack = leak_});
    append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = before});
    append(&events_, {.time_ns = ++time_, .action = Action::kFreeCompleted, .address = 1});
  }
  const std::vector<Leak> leaks = find_leaks(histories(), tables_);
  ASSERT_EQ(leaks.size(), 1);
  EXPECT_EQ(leaks[0].bytes_a_step, 256);
  EXPECT_FALSE(leaks[0].sizes_rise);
  EXPECT_FALSE(leaks[0].is_used_after);
  append(&events_, {.time_ns = ++time_, .address = 7, .size_bytes = 4, .stack = churn_});
  const std::vector<Leak> used = find_leaks(histories(), tables_);
  ASSERT_EQ(used.size(), 1);
  EXPECT_TRUE(used[0].is_used_after);
}

/// A worker of multiprocessing, with its parent, whose line `item_` makes items of 1,032 bytes.
class LeakOfWorker : public LeakHistory {
 protected:
  LeakOfWorker() {
    tables_.processes = {{.pid = 11, .parent_pid = 10, .exited_cleanly = true}, {.pid = 10}};
    tables_.devices.push_back({.type = 0});  // shared memory
    const auto frame = [&](std::string_view file, std::string_view function, uint32_t line) {
      return tables_.stacks.intern_frame(
          {tables_.strings.intern(file), tables_.strings.intern(function), line});
    };
    const uint32_t run = tables_.stacks.push(
        0, frame("/usr/lib/python3.11/multiprocessing/process.py", "BaseProcess.run", 108));
    item_ = tables_.stacks.push(run, frame("/srv/me/data.py", "Items.__getitem__", 39));
    join_ = tables_.stacks.push(run, frame("/srv/me/data.py", "collate", 50));
  }
  void make(uint64_t address, uint64_t size_bytes, uint32_t stack, uint16_t device = 0) {
    EventRow row{.time_ns = ++time_, .address = address, .size_bytes = size_bytes};
    row.device = device, row.stack = stack;
    append(&events_, row);
  }
  void drop(uint64_t address, uint16_t device = 0) {
    EventRow row{.time_ns = ++time_, .action = Action::kFreeCompleted, .address = address};
    row.device = device;
    append(&events_, row);
  }
  /// `items` of a batch, that are joined in shared memory and dropped.
  void batch(uint64_t items) {
    for (uint64_t i = 0; i < items; ++i) make(100 + i, 1032, item_);
    make(5, items * 1024, join_, 1);
    for (uint64_t i = 0; i < items; ++i) drop(100 + i);
    drop(5, 1);
  }
  void keep(uint64_t items) {
    for (uint64_t i = 0; i < items; ++i) make(1000 + i, 1032, item_);
  }
  std::vector<bool> are_steps_of_leaks() {
    std::vector<bool> out;
    for (const Leak& leak : find_leaks(histories(), tables_)) out.push_back(leak.are_steps);
    return out;
  }

  uint32_t item_ = 0, join_ = 0;
};

TEST_F(LeakOfWorker, ItemsOfABatchAreNoGrowthHoweverManyBatchesAndWhereverItEnds) {
  for (uint64_t items : {4, 8, 16, 64}) {
    for (uint64_t batches = 1; batches <= 6; ++batches) {
      for (uint64_t more : {uint64_t{0}, items / 2, items - 1}) {
        events_.clear();
        for (uint64_t i = 0; i < batches; ++i) batch(items);
        for (uint64_t i = 0; i < more; ++i) make(100 + i, 1032, item_);
        for (bool is_warning : are_steps_of_leaks()) {
          EXPECT_FALSE(is_warning) << batches << " of " << items << " and " << more;
        }
      }
    }
  }
}

TEST_F(LeakOfWorker, WhatEachTaskKeepsIsALeakWhereTheWorkerEndsByItselfOrByItsParent) {
  keep(40);
  EXPECT_EQ(are_steps_of_leaks(), std::vector<bool>{true});
  // In the middle of what may be its first task.
  tables_.processes[0].exited_cleanly = false;
  EXPECT_EQ(are_steps_of_leaks(), std::vector<bool>{false});
  tables_.processes[1].exited_cleanly = true;
  EXPECT_EQ(are_steps_of_leaks(), std::vector<bool>{true});
}

TEST_F(LeakOfWorker, WhatIsUsedWhenAllOfItIsThereMayBeDataOfOneTask) {
  keep(40);
  make(5, 8, join_, 1);
  EXPECT_EQ(are_steps_of_leaks(), std::vector<bool>{false});
}

TEST_F(LeakOfWorker, WhatAComprehensionMakesIsOfOneTask) {
  const uint32_t parent = tables_.stacks.node(item_).parent;
  const uint32_t file = tables_.strings.intern("/srv/me/data.py");
  const uint32_t function = tables_.strings.intern("load.<locals>.<listcomp>");
  item_ = tables_.stacks.push(parent, tables_.stacks.intern_frame({file, function, 18}));
  keep(40);
  EXPECT_EQ(are_steps_of_leaks(), std::vector<bool>{});
}

TEST_F(LeakOfWorker, ACacheThatKeepsEachItemOfEachBatchIsALeak) {
  for (uint64_t i = 0; i < 6; ++i) {
    for (uint64_t item = 0; item < 8; ++item) make(1000 + 8 * i + item, 1032, item_);
    make(5, 8 * 1024, join_, 1);
    drop(5, 1);
  }
  const std::vector<Leak> leaks = find_leaks(histories(), tables_);
  ASSERT_EQ(leaks.size(), 1);
  EXPECT_TRUE(leaks[0].are_steps);
  EXPECT_EQ(leaks[0].bytes_a_step, 1032);
}

TEST_F(LeakHistory, AMissedFreeIsNoLeak) {
  // The same address again and again without a free: each block ends with the next.
  for (int i = 0; i < 100; ++i) {
    append(&events_, {.time_ns = ++time_, .address = 9, .size_bytes = 100, .stack = churn_});
  }
  LeakGatherer gatherer;
  Feed feed;
  feed.gatherer = &gatherer;
  LiveState state;
  MemorySource source(events_, 10);
  EventBatch batch;
  while (*source.next(&batch)) {
    gatherer.begin_batch(batch, tables_, state);
    state.apply_observed(batch, feed);
  }
  EXPECT_TRUE(find_leaks(feed.finish(state), tables_).empty());
}

}  // namespace
}  // namespace gpumemprof

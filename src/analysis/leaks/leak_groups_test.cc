#include "analysis/leaks/leak_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

class LeakGroups : public testing::Test {
 protected:
  /// Keeps `bytes` a step for ten steps; in a module that has a path, or in none.
  Leak leak(uint32_t line, uint64_t bytes, std::string_view module = {}) {
    const uint32_t own = tables_.stacks.push(0, frame("/srv/me/train.py", "main", line));
    uint32_t stack = own;
    if (!module.empty()) stack = tables_.stacks.push(own, frame(kModuleFile, module, 0));
    Leak out{.node = own, .bytes_a_step = static_cast<double>(bytes), .survivors_a_step = 1};
    out.live_bytes = out.grown_bytes = 10 * bytes, out.steps = 10;
    // Survivors enough that it is not one block that a larger one replaces.
    out.stacks.push_back({.stack = stack,
                          .growth = {.bytes_a_step = out.bytes_a_step, .grown_bytes = 10 * bytes},
                          .survivors = 10,
                          .largest_bytes = bytes,
                          .survivor_bytes = 10 * bytes,
                          .old_survivors = 9});
    return out;
  }

  uint32_t frame(std::string_view file, std::string_view function, uint32_t line) {
    return tables_.stacks.intern_frame(
        {tables_.strings.intern(file), tables_.strings.intern(function), line});
  }

  std::vector<LeakGroup> groups() const {
    return group_leaks(leaks_, tables_, HolderStacks(nullptr));
  }

  static std::vector<size_t> line_counts(const std::vector<LeakGroup>& groups) {
    std::vector<size_t> out;
    for (const LeakGroup& group : groups) out.push_back(group.lines.size());
    return out;
  }

  Tables tables_;
  std::vector<Leak> leaks_;
};

TEST_F(LeakGroups, WhatIsGrownIsTheRateTimesTheStepsWhereLinesAreMeasuredOverOthers) {
  leaks_ = {leak(7, 400, "model.a"), leak(9, 300, "model.b")};
  leaks_[1].steps = 5, leaks_[1].grown_bytes = 5 * 300;
  const auto all = groups();
  ASSERT_EQ(line_counts(all), std::vector<size_t>{2});
  EXPECT_EQ(all[0].whole.steps, 10u);
  EXPECT_EQ(all[0].whole.bytes_a_step, 700);
  EXPECT_EQ(all[0].whole.grown_bytes, 7000u) << "700 bytes in each of 10 steps, not 5500";
}

TEST_F(LeakGroups, LinesOfOneBugAreOneWithTheSumsOfAll) {
  leaks_ = {leak(7, 400, "model.a"), leak(9, 300, "model.b"), leak(8, 200, "model.b")};
  const auto all = groups();
  ASSERT_EQ(line_counts(all), std::vector<size_t>{3});
  EXPECT_STREQ(all[0].name->name, "activations_kept");
  EXPECT_EQ(all[0].lines.front(), &leaks_[0]);
  EXPECT_EQ(all[0].whole.node, leaks_[0].node);
  EXPECT_EQ(all[0].whole.bytes_a_step, 900);
  EXPECT_EQ(all[0].whole.survivors_a_step, 3);
  EXPECT_EQ(all[0].whole.live_bytes, 9000u);
  EXPECT_EQ(all[0].whole.stacks.size(), 3u);
  EXPECT_EQ(all[0].evidence.module, "model.b") << "500 bytes against 400";
}

TEST_F(LeakGroups, LinesOfWhichNothingIsKnownStayAlone) {
  leaks_ = {leak(7, 400), leak(8, 300), leak(9, 200, "model.a")};
  const auto all = groups();
  EXPECT_EQ(line_counts(all), (std::vector<size_t>{1, 1, 1}));
  EXPECT_STREQ(all[0].name->name, kGrowth);
}

TEST_F(LeakGroups, WhatAGraphKeepsOfInputsIsToldWithTheGraph) {
  leaks_ = {leak(7, 400, "model.a"), leak(8, 300), leak(9, 200)};
  const auto rises = [&](size_t i) -> auto& { return leaks_[i].stacks[0].growth.rise_steps; };
  rises(0) = rises(1) = {20, 30, 40};
  rises(2) = {21, 22, 23};
  const auto all = groups();
  EXPECT_EQ(line_counts(all), (std::vector<size_t>{2, 1}));
  EXPECT_EQ(all[0].whole.bytes_a_step, 700);
  EXPECT_EQ(all[0].whole.node, leaks_[0].node);
}

TEST_F(LeakGroups, NoGraphKeepsWhatWasMadeUnderNoGrad) {
  leaks_ = {leak(7, 400, "model.a"), leak(8, 300)};
  for (Leak& one : leaks_) one.stacks[0].growth.rise_steps = {20, 30, 40};
  uint32_t& stack = leaks_[1].stacks[0].stack;
  stack = tables_.stacks.push(stack, frame(kModeFile, "no grad", 0));
  EXPECT_EQ(line_counts(groups()), (std::vector<size_t>{1, 1}));
}

/// Each rises in every step, as any two may.
TEST_F(LeakGroups, WhatAutogradSavedForAGraphThatIsKeptIsToldWithTheGraph) {
  leaks_ = {leak(7, 400, "model.a"), leak(8, 300), leak(9, 200), leak(10, 100)};
  const uint32_t saved[] = {leaks_[1].stacks[0].stack, leaks_[3].stacks[0].stack};
  leaks_[3].is_after_steps = true;  // for another graph
  const ToldOfStack told{
      .is_saved = [&](uint32_t stack) { return stack == saved[0] || stack == saved[1]; }};
  const auto all = group_leaks(leaks_, tables_, HolderStacks(nullptr), told);
  EXPECT_EQ(line_counts(all), (std::vector<size_t>{2, 1, 1}));
  EXPECT_EQ(all[0].whole.bytes_a_step, 700);
  EXPECT_EQ(all[0].whole.node, leaks_[0].node);
}

TEST_F(LeakGroups, AsManyBlocksAsThereAreParametersAreTheirFirstGradients) {
  leaks_ = {leak(7, 400, "model.a")};  // ten survivors
  size_t gradients = 10;
  const ToldOfStack told{.gradients = [&](uint32_t) { return gradients; }};
  const auto are_first = [&] {
    return group_leaks(leaks_, tables_, HolderStacks(nullptr), told)[0].evidence.are_first_gradients;
  };
  EXPECT_TRUE(are_first());
  gradients = 9;
  EXPECT_FALSE(are_first());
}

TEST_F(LeakGroups, ProcessesAndDevicesStayApart) {
  leaks_ = {leak(7, 400, "model.a"), leak(8, 300, "model.a"), leak(9, 200, "model.a")};
  leaks_[1].device = 1, leaks_[2].process = 1;
  EXPECT_EQ(line_counts(groups()), (std::vector<size_t>{1, 1, 1}));
}

TEST_F(LeakGroups, EachLineLooksAtAFewGroupsHoweverManyThereAre) {
  constexpr uint32_t kLines = 4000;
  for (uint32_t line = 1; line <= kLines; ++line) {
    leaks_.push_back(leak(line, 100, line % 2 == 0 ? "model.a" : ""));
  }
  uint64_t steps = 0;
  const auto all = group_leaks(leaks_, tables_, HolderStacks(nullptr), {}, &steps);
  EXPECT_EQ(all.size(), kLines / 2 + 1) << "one bug of the modules, the others alone";
  EXPECT_LE(steps, 2 * kLines);
}

TEST_F(LeakGroups, AttributesOfTheObjectsInOneContainerHaveOneHolder) {
  tables_.processes.push_back({.pid = 5, .start_ticks = 6});
  tables_.devices.push_back({.process = 0});
  const auto groups_of = [&](std::string container_of_v) {
    leaks_ = {leak(7, 100), leak(8, 60)};
    std::vector<ProcessHolders> told(1);
    told[0].pid = 5, told[0].start_ticks = 6;
    HoldersLook& look = told[0].looks.emplace_back();
    look.time_ns = 10;
    look.holders = {{.path = "Cache.K, by caches in main (serve.py)", .name = "Cache.K",
                     .container = "caches in main (serve.py)", .owner = "attribute"},
                    {.path = "Cache.V, by caches in main (serve.py)", .name = "Cache.V",
                     .container = std::move(container_of_v), .owner = "attribute"}};
    LiveState state;
    for (uint32_t i = 0; i < 20; ++i) {
      state.adopt(0, 100 * (i + 1), {.size_bytes = 50, .stack = leaks_[i % 2].node});
      look.by_address[100 * (i + 1)] = i % 2;
    }
    HolderStacks holders(&told);
    holders.finish(tables_, state);
    std::vector<std::pair<size_t, std::string>> out;
    for (const LeakGroup& group : group_leaks(leaks_, tables_, holders)) {
      out.emplace_back(group.lines.size(), group.container);
      const bool are_all = group.lines.size() == 2;
      EXPECT_EQ(group.whole.bytes_a_step, are_all ? 160 : group.lines[0]->bytes_a_step);
    }
    return out;
  };
  using Groups = std::vector<std::pair<size_t, std::string>>;
  EXPECT_EQ(groups_of("caches in main (serve.py)"), (Groups{{2, "caches in main (serve.py)"}}));
  EXPECT_EQ(groups_of("others in main (serve.py)"), (Groups{{1, ""}, {1, ""}}));
  EXPECT_EQ(groups_of(""), (Groups{{1, ""}, {1, ""}})) << "two lists of one object";
}

TEST_F(LeakGroups, VariablesAndOperationsWithoutALineAreToldWithTheFunctionThatIsTracedAgain) {
  const std::string packages = "/v/lib/python3.11/site-packages/";
  leaks_ = {leak(7, 400), leak(8, 300), leak(9, 4), leak(10, 200)};
  const auto within = [&](size_t i, std::string_view file, std::string_view function) {
    uint32_t& stack = leaks_[i].stacks[0].stack;
    stack = tables_.stacks.push(stack, frame(file, function, file.starts_with('<') ? 0 : 3));
  };
  within(0, kOperationFile, kMadeBy);
  within(0, kOperationFile, "StatefulPartitionedCall/adam/AssignAddVariableOp");
  leaks_[0].is_retraced = true;
  within(1, packages + "keras/src/layers/layer.py", "Layer.add_weight");
  leaks_[2].node = leaks_[2].stacks[0].stack =
      tables_.stacks.push(0, frame(kOperationFile, "StatefulPartitionedCall/Sum_2", 0));
  const auto all = groups();
  EXPECT_EQ(line_counts(all), (std::vector<size_t>{3, 1})) << "line 10 may keep anything";
  EXPECT_STREQ(all[0].name->name, "function_retraced");
  EXPECT_EQ(all[0].whole.bytes_a_step, 704);
  leaks_[0].is_retraced = false;
  EXPECT_EQ(groups().size(), 4u);
}

}  // namespace
}  // namespace gpumemprof

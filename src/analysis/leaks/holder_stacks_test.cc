// Who holds what a stack made, from looks that are lists of addresses.
#include "analysis/leaks/holder_stacks.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

constexpr uint32_t kStack = 7;

/// One process with one device, whose blocks one stack made, and one look at it.
struct Looked {
  Tables tables;
  LiveState state;
  std::vector<ProcessHolders> told{1};

  explicit Looked(std::vector<TensorHolder> holders) {
    tables.processes.push_back({.pid = 5, .start_ticks = 6});
    tables.devices.push_back({.process = 0});
    told[0].pid = 5, told[0].start_ticks = 6;
    told[0].looks.push_back({.time_ns = 10, .holders = std::move(holders)});
  }
  void block(uint64_t address, uint64_t size_bytes, uint32_t holder, uint64_t time_ns = 0) {
    state.adopt(0, address, {.size_bytes = size_bytes, .time_ns = time_ns, .stack = kStack});
    told[0].looks[0].by_address[address] = holder;
  }
  HolderStacks::Held most() const {
    HolderStacks holders(&told);
    holders.finish(tables, state);
    return holders.most_of(0, 0, {kStack}, tables);
  }
};

TEST(HolderStacks, TheHolderOfTheMostBytesIsNamed) {
  Looked looked({{.name = "small", .owner = "variable"}, {.name = "large", .owner = "variable"}});
  looked.block(100, 10, 0);
  looked.block(200, 10, 0);
  looked.block(300, 30, 1);
  EXPECT_EQ(looked.most().holder->name, "large");
  EXPECT_EQ(looked.most().held_blocks, 1u);
}

TEST(HolderStacks, BlocksOfWhichLittleIsShownAreViewed) {
  Looked looked(std::vector<TensorHolder>{{.name = "kept", .owner = "variable"}});
  looked.block(100'000, 4096, 0);  // half: a view
  looked.block(200'000, 4096, 0);  // more: none
  looked.block(300'000, 512, 0);   // may be rounded
  looked.block(400'000, 4096, 0);  // an older file does not tell
  looked.told[0].looks[0].shown_bytes = {{100'000, 2048}, {200'000, 2049}, {300'000, 4}};
  const ViewedBlocks viewed = looked.most().viewed;
  EXPECT_EQ(viewed.blocks, 1u);
  EXPECT_EQ(viewed.bytes, 4096u);
  EXPECT_EQ(viewed.shown_bytes, 2048u);
}

TEST(HolderStacks, ABlockThatIsBeingMadeIsNobodysAndSaysNothing) {
  Looked looked({{.name = "cache", .owner = "variable"}, {.owner = "nothing"}});
  looked.block(100, 10, 0);
  looked.block(200, 11, 1);
  EXPECT_EQ(looked.most().holder->name, "cache");
}

TEST(HolderStacks, ABlockThatTheNextEventEndsWasHeld) {
  Looked looked({{.name = "cache", .owner = "variable"}, {.owner = "nothing"}});
  looked.block(200, 11, 1);
  looked.told[0].looks[0].by_address[100] = 0;
  HolderStacks holders(&looked.told);
  const HolderStacks::Ended ended{0, 100, {.size_bytes = 10, .stack = kStack}};
  holders.take(looked.tables, looked.state, &ended);
  EXPECT_EQ(holders.most_of(0, 0, {kStack}, looked.tables).holder->name, "cache");
}

TEST(HolderStacks, ManyBlocksThatNothingHoldsHoldThemselves) {
  Looked looked({{.name = "last", .owner = "variable"}, {.owner = "nothing"}});
  looked.block(100, 10, 0);
  for (uint64_t i = 0; i < 5; ++i) looked.block(200 + 100 * i, 10, 1);
  EXPECT_EQ(looked.most().holder->owner, "nothing");
  EXPECT_EQ(looked.most().held_blocks, 5u);
}

TEST(HolderStacks, WhoHasTheLastBlockAloneIsNotTheHolderOfWhatGrows) {
  Looked looked({{.name = "r", .owner = "variable"}, {.name = "kept", .owner = "variable"}});
  looked.block(100, 10, 0);
  for (uint64_t i = 0; i < 59; ++i)  // no look has reached them
    looked.state.adopt(0, 1000 + 100 * i, {.size_bytes = 10, .stack = kStack});
  const HolderStacks::Held none = looked.most();
  EXPECT_EQ(none.holder, nullptr);
  EXPECT_EQ(none.reached_blocks, 1u);
  EXPECT_EQ(none.live_blocks, 60u);
  for (uint64_t i = 0; i < 15; ++i) looked.told[0].looks[0].by_address[1000 + 100 * i] = 1;
  EXPECT_EQ(looked.most().holder->name, "kept") << "15 of 60: a quarter";
  looked.told[0].looks[0].by_address.erase(1000);
  EXPECT_EQ(looked.most().holder, nullptr) << "14 of 60";
}

TEST(HolderStacks, AsManyBlocksAsAreAskedForAreHeld) {
  Looked looked({{.name = "pair", .owner = "variable"}, {.name = "other", .owner = "variable"}});
  looked.block(100, 10, 0);
  looked.block(200, 10, 0);
  HolderStacks holders(&looked.told);
  holders.finish(looked.tables, looked.state);
  EXPECT_EQ(holders.most_of(0, 0, {kStack}, looked.tables, 2).holder->name, "pair");
  EXPECT_EQ(holders.most_of(0, 0, {kStack}, looked.tables, 3).holder, nullptr);
}

TEST(HolderStacks, AFewLargeBlocksOfTheMomentHideNoHolderOfManySmallOnes) {
  Looked looked({{.name = "losses", .owner = "variable"}, {.owner = "nothing"}});
  for (uint64_t i = 0; i < 25; ++i) looked.block(100 + 100 * i, 4, 0);
  for (uint64_t i = 0; i < 3; ++i) looked.block(9000 + 1000 * i, 28'000, 1);
  EXPECT_EQ(looked.most().holder->name, "losses");  // 25 blocks > 8 * 3
  looked.block(20'000, 28'000, 1);
  EXPECT_EQ(looked.most().holder->owner, "nothing");  // 25 blocks < 8 * 4
}

/// Steps end at 100, 200, … The variable has one tensor with a graph of 40 blocks.
TEST(HolderStacks, AGraphThatOneStepMadeIsNoStateOfManySteps) {
  const auto holder_of = [](uint64_t first_ns, uint64_t steps) {
    Looked looked(std::vector<TensorHolder>{
        {.name = "p", .owner = "variable", .tensors = 1, .with_graph = 1, .storages = 40}});
    looked.told[0].looks[0].time_ns = 10'000;
    for (uint64_t i = 0; i < 40; ++i) looked.block(100 + 100 * i, 10, 0, first_ns + i);
    looked.tables.threads = {{.process = 0, .tid = 5}};
    std::vector<Mark> marks;
    for (uint64_t i = 1; i <= steps; ++i)
      marks.push_back({.kind = MarkKind::kStep, .time_ns = 100 * i});
    HolderStacks holders(&looked.told);
    holders.take_steps(looked.tables, marks);
    holders.finish(looked.tables, looked.state);
    return holders.most_of(0, 0, {kStack}, looked.tables).holder != nullptr;
  };
  EXPECT_FALSE(holder_of(210, 8));
  EXPECT_TRUE(holder_of(190, 8)) << "of two";
  EXPECT_TRUE(holder_of(210, 7)) << "too few steps: rounds are looked at";
  EXPECT_TRUE(holder_of(810, 8)) << "after the last step";
}

/// A look at what a library's function has, which runs on the main thread, and the stacks that follow.
struct LookedInACall {
  Looked looked{{{.name = "grads", .owner = "variable", .function = {"adam", "/x/torch/adam.py"}},
                 {.name = "kept", .owner = "variable"}}};
  HolderStacks holders{&looked.told};

  LookedInACall() {
    looked.tables.threads = {{.process = 0, .tid = 5}, {.process = 0, .tid = 9}};
    for (uint64_t i = 0; i < 4; ++i) looked.block(100 + 100 * i, 10, 0);
    for (uint64_t i = 0; i < 2; ++i) looked.block(1000 + 100 * i, 10, 1);
    holders.take(looked.tables, looked.state);
  }
  uint32_t push(uint32_t parent, const char* file, const char* function, uint32_t line) {
    StringTable& strings = looked.tables.strings;
    const Frame frame{strings.intern(file), strings.intern(function), line};
    return looked.tables.stacks.push(parent, looked.tables.stacks.intern_frame(frame));
  }
  uint32_t train() { return push(0, "/me/train.py", "<module>", 3); }
  void follow(uint32_t thread, uint32_t stack) { holders.follow(looked.tables, thread, stack); }
  HolderStacks::Held most() const { return holders.most_of(0, 0, {kStack}, looked.tables); }
};

TEST(HolderStacks, AVariableOfALibrarysFunctionHoldsNothingOnceThatHasReturned) {
  LookedInACall run;
  EXPECT_TRUE(run.holders.awaits_returns());
  const uint32_t inside = run.push(run.train(), "/x/torch/adam.py", "Adam.adam", 8);
  run.follow(0, run.push(inside, "/x/torch/_tensor.py", "f", 1));
  run.follow(1, run.train());
  run.follow(0, 0);
  run.follow(0, run.push(0, "<torch backward>", "AddBackward0", 0));
  EXPECT_EQ(run.most().holder->name, "grads") << "it runs, or nothing is known";
  run.follow(0, run.push(run.train(), "/me/adam.py", "adam", 8));
  EXPECT_FALSE(run.holders.awaits_returns());
  EXPECT_EQ(run.most().holder->name, "kept");
  EXPECT_EQ(run.most().held_blocks, 2u);
  EXPECT_EQ(run.most().returned_blocks, 4u);
  EXPECT_EQ(run.most().reached_blocks, 6u);
}

TEST(HolderStacks, AStackThatMayHaveBeenCutDoesNotTellWhatHasReturned) {
  LookedInACall run;
  uint32_t deep = run.train();
  for (uint32_t i = 0; i < 128; ++i) deep = run.push(deep, "/me/train.py", "f", 1);
  run.follow(0, deep);
  EXPECT_EQ(run.most().holder->name, "grads");
}

}  // namespace
}  // namespace gpumemprof

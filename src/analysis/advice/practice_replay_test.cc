// Changed traces, whose peaks are counted by hand, and how saved tensors ended.
#include "analysis/advice/practices.h"

#include <gtest/gtest.h>

#include "analysis/leaks/graph_lives.h"
#include "trace/label_frames.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

/// Writes a short program: addresses and bytes as the test says.
class ReplayedProgram {
 public:
  ReplayedProgram() {
    tables.processes.emplace_back();
    tables.threads.push_back({0, 11, "t"});
    tables.devices.resize(2);
    for (const char* name : {"weights", "data", "forward", "backward"}) line(name);
    forward = label(stacks[2], kModuleFile, "layer");
    backward = label(label(stacks[3], kModuleFile, "layer"), kBackwardFile, "AddmmBackward0");
  }
  void alloc(uint64_t address, uint64_t bytes, uint32_t stack, uint16_t device = 0) {
    append(&events, {.time_ns = ++time,
                     .address = address,
                     .size_bytes = bytes,
                     .stack = stack,
                     .device = device});
  }
  void free(uint64_t address, uint16_t device = 0) {
    append(&events, {.time_ns = ++time,
                     .action = Action::kFreeCompleted,
                     .address = address,
                     .device = device});
  }
  void mark(MarkKind kind, uint64_t address = 0, uint64_t value = 0) {
    events.marks.push_back(
        {static_cast<uint32_t>(events.size()), kind, 0, 0, ++time, address, value});
  }
  void end_step() { mark(MarkKind::kStep, 0, ++steps - 1); }

  uint32_t label(uint32_t stack, std::string_view file, std::string_view text) {
    const Frame frame{tables.strings.intern(file), tables.strings.intern(text), 0};
    return tables.stacks.push(stack, tables.stacks.intern_frame(frame));
  }

  /// The peak with the change, whatever the size of the batches.
  uint64_t peak(TraceChange::Rule rule, const std::vector<std::pair<uint32_t, uint32_t>>& groups,
                uint64_t stays_bytes = 0, uint16_t device = 0) const {
    TraceChange change{.rule = rule, .device = device, .stays_bytes = stays_bytes};
    for (const auto& [stack, group] : groups) change.group_of[stack] = group;
    return peak_with(change);
  }
  uint64_t peak_with(const TraceChange& change) const {
    MemorySource source(events, 4096);
    source.mutable_tables() = tables;
    LiveState state;
    state.apply(before);
    source.set_state_before(std::move(state));
    const auto peaks = replay_changes(source, {change});
    return peaks ? peaks->front().bytes : 0;
  }

  Tables tables;
  EventBatch before;  // as a snapshot's ring has dropped it
  EventBatch events;
  std::vector<uint32_t> stacks;
  uint32_t forward = 0, backward = 0;
  uint64_t time = 1000, steps = 0;

 private:
  void line(const char* name) {
    const Frame frame{tables.strings.intern("/me/train.py"), tables.strings.intern(name),
                      static_cast<uint32_t>(stacks.size()) + 1};
    stacks.push_back(tables.stacks.push(0, tables.stacks.intern_frame(frame)));
  }
};

using Rule = TraceChange::Rule;

TEST(PracticeReplay, WithoutAnyStackThePeakIsThatOfTheTrace) {
  ReplayedProgram p;
  p.alloc(1, 100, p.stacks[0]);
  p.alloc(2, 50, p.stacks[1]);
  p.free(2);
  p.alloc(3, 20, p.stacks[1]);
  p.alloc(9, 7, p.stacks[1], 1);
  EXPECT_EQ(p.peak(Rule::kGone, {}), 150u);
  EXPECT_EQ(p.peak(Rule::kGone, {}, 0, 1), 7u) << "of the other device";
}

TEST(PracticeReplay, WhatWasLiveBeforeTheFirstEventIsPartOfThePeakAndCanBeGone) {
  ReplayedProgram p;
  append(&p.before, {.address = 1, .size_bytes = 100, .stack = p.stacks[0]});
  append(&p.before, {.address = 2, .size_bytes = 30, .stack = p.stacks[1]});
  p.alloc(3, 20, p.stacks[2]);  // 150
  p.free(2);
  p.alloc(4, 25, p.stacks[2]);  // 145
  EXPECT_EQ(p.peak(Rule::kGone, {}), 150u);
  EXPECT_EQ(p.peak(Rule::kGone, {{p.stacks[1], 0}}), 145u);
  EXPECT_EQ(p.peak(Rule::kMadeAnewEachStep, {{p.stacks[0], 0}}), 150u) << "no step has ended";
}

TEST(PracticeReplay, WhatIsGoneLeavesThePeakToAnotherMoment) {
  ReplayedProgram p;
  p.alloc(1, 100, p.stacks[0]);
  p.alloc(2, 80, p.stacks[1]);  // 180
  p.free(2);
  p.alloc(3, 30, p.stacks[2]);  // 130
  EXPECT_EQ(p.peak(Rule::kGone, {{p.stacks[1], 0}}), 130u);
  EXPECT_EQ(p.peak(Rule::kGone, {{p.stacks[1], 0}}, 70), 170u) << "70 of it stay";
  EXPECT_EQ(p.peak(Rule::kGone, {{p.stacks[1], 0}}, 500), 180u) << "never more than there was";
}

/// Buckets of 50 from the start on, gradients of 30 and 20 for a while: 100 with them, and 130 later.
TEST(PracticeReplay, WhatIsHeldTwiceIsHeldOnce) {
  ReplayedProgram p;
  p.alloc(1, 50, p.stacks[0]);
  p.alloc(2, 30, p.stacks[1]);
  p.alloc(3, 20, p.stacks[1]);
  const std::vector<std::pair<uint32_t, uint32_t>> groups = {{p.stacks[1], 0}, {p.stacks[0], 1}};
  EXPECT_EQ(p.peak(Rule::kHeldOnce, groups), 50u);
  p.alloc(4, 60, p.stacks[1]);
  EXPECT_EQ(p.peak(Rule::kHeldOnce, groups), 110u) << "never more than the buckets have";
  p.free(2), p.free(3), p.free(4);
  p.alloc(5, 80, p.stacks[2]);
  EXPECT_EQ(p.peak(Rule::kHeldOnce, groups), 130u) << "without gradients the buckets stay";
}

TEST(PracticeReplay, WhatOutlivesItsStepIsGoneWithIt) {
  ReplayedProgram p;
  p.alloc(1, 100, p.stacks[0]);
  for (uint64_t step = 0; step < 3; ++step) {
    p.alloc(10 + step, 40, p.stacks[1]);
    p.end_step();
  }
  EXPECT_EQ(p.peak(Rule::kGone, {}), 220u);
  EXPECT_EQ(p.peak(Rule::kGoneAfterStep, {{p.stacks[1], 0}}), 140u);
}

/// Weights of 100 and one gradient of 30 that is kept; an activation of 60, and in each backward
/// pass after the first one a temporary gradient of 30 that is added to it.
TEST(PracticeReplay, AGradientThatIsDroppedComesAgainInBackward) {
  ReplayedProgram p;
  p.alloc(1, 100, p.stacks[0]);
  for (uint64_t step = 0; step < 3; ++step) {
    p.alloc(2, 60, p.forward);
    p.alloc(step == 0 ? 3 : 4, 30, p.backward);
    if (step != 0) p.free(4);
    p.free(2);
    p.alloc(5, 50, p.stacks[1]);  // after backward, with the gradient: 180
    p.free(5);
    p.end_step();
  }
  EXPECT_EQ(p.peak(Rule::kGone, {}), 220u) << "two gradients in backward";
  EXPECT_EQ(p.peak(Rule::kMadeAnewEachStep, {{p.backward, 0}}), 190u) << "one, and never none";
}

/// Weights of 100 and a gradient of 30 that an activation of 60 finds still there.
TEST(PracticeReplay, WhatIsIdleIsGoneUntilItIsFreed) {
  ReplayedProgram p;
  p.alloc(1, 100, p.stacks[0]);     // the device's event 0
  p.alloc(2, 30, p.backward);       // 1: 130
  p.alloc(1, 7, p.stacks[1], 1);    // another device's
  p.alloc(3, 60, p.forward);        // 2: 190
  p.free(2);                        // 3
  p.alloc(4, 20, p.stacks[1]);      // 4: 180
  EXPECT_EQ(p.peak(Rule::kGone, {}), 190u);
  TraceChange change{.rule = Rule::kGoneWhileIdle};
  change.idle = {{.begin_event = 2, .end_event = 3, .size_bytes = 30}};
  EXPECT_EQ(p.peak_with(change), 180u);
  p.alloc(5, 5, p.stacks[1]);  // 5: 185, and nothing of it is idle
  EXPECT_EQ(p.peak_with(change), 185u);
}

TEST(PracticeReplay, OneGroupIsThereAtATime) {
  ReplayedProgram p;
  const uint32_t blocks[] = {p.stacks[1], p.stacks[2], p.stacks[3]};
  p.alloc(1, 100, p.stacks[0]);
  for (uint64_t i = 0; i < 3; ++i) {
    p.alloc(10 + i, 40 + i, blocks[i]);
    p.alloc(20 + i, 10, blocks[i]);
  }
  // Of each block 10 stay; the largest is there as a whole.
  EXPECT_EQ(p.peak(Rule::kOneGroupAtATime, {{blocks[0], 0}, {blocks[1], 1}, {blocks[2], 2}}, 10),
            100u + 10 + 10 + 52);
}

/// Weights of 100 and a file of 60 + 30 that is loaded twice, of which the model takes over the 30.
TEST(PracticeReplay, WhatWasLoadedIsGoneWhenAModelIsCalled) {
  ReplayedProgram p;
  p.alloc(1, 100, p.stacks[0]);
  p.alloc(2, 60, p.stacks[1]);
  p.alloc(3, 30, p.stacks[1]);  // the device's event 2: 190
  p.alloc(4, 20, p.forward);    // 210, and 150 without the file
  p.free(4);
  p.end_step();
  p.alloc(5, 60, p.stacks[1]);  // 250, and 190 without the first one
  p.alloc(6, 30, p.stacks[1]);  // 280, and 220
  p.free(2);
  p.free(3);
  p.alloc(4, 20, p.forward);    // 210, and 120
  TraceChange change{.rule = Rule::kGoneAtCall};
  change.group_of[p.stacks[1]] = 0;
  change.calls.insert(p.forward);
  EXPECT_EQ(p.peak_with(change), 190u) << "the first file is gone as a whole";
  change.kept_events.insert(2);
  EXPECT_EQ(p.peak_with(change), 220u);
  change.calls.clear();
  EXPECT_EQ(p.peak_with(change), 280u) << "nothing is called";
}

TEST(PracticeReplay, AMissedFreeCountsNothingTwice) {
  ReplayedProgram p;
  p.alloc(1, 100, p.stacks[0]);
  p.alloc(1, 60, p.stacks[1]);
  p.free(7);
  EXPECT_EQ(p.peak(Rule::kGone, {}), 100u);
  EXPECT_EQ(p.peak(Rule::kGone, {{p.stacks[0], 0}}), 60u);
}

/// A frozen model reads what another made (10 B, in the graph) and data (20 B). Of what it computes
/// stay 40 and 2 B, for the gradient of the first.
TEST(PracticeReplay, WhatIsComputedOfASourceStays) {
  ReplayedProgram p;
  const uint32_t net = p.stacks[0], data = p.stacks[1], judge = p.forward;
  p.alloc(1, 10, net);
  p.alloc(2, 20, data);
  p.mark(MarkKind::kSaved, 1, kSavedHasHistory);
  p.alloc(3, 40, judge);
  p.mark(MarkKind::kSaved, 3, kSavedIsOutput | kSavedHasHistory);
  p.mark(MarkKind::kSaved, 2, kSavedHasHistory | kSavedIsConstant);
  p.alloc(4, 80, judge);
  p.alloc(5, 160, judge);  // of an operation that saves nothing
  p.mark(MarkKind::kSaved, 3, kSavedHasHistory);
  p.alloc(6, 2, judge);
  p.alloc(7, 320, p.backward);
  TraceChange change{.rule = Rule::kGone};
  change.group_of = {{judge, TraceChange::kUnlessDerived}, {p.backward, 0}};
  EXPECT_EQ(p.peak_with(change), 10u + 20u);
  change.sources = {net};
  EXPECT_EQ(p.peak_with(change), 10u + 20u + 40u + 2u);
}

TEST(GraphLives, TellHowSavedTensorsEnded) {
  ReplayedProgram p;
  const auto save = [&](uint64_t address, uint64_t bytes) {
    p.alloc(address, bytes, p.forward);
    p.mark(MarkKind::kSaved, address, kSavedIsOutput | kSavedHasHistory);
  };
  save(1, 10);
  p.alloc(2, 1, p.backward);
  p.free(1);  // while the node runs
  p.free(2);
  p.end_step();
  save(3, 20);
  p.free(3);  // nobody came for it
  save(4, 30);
  p.alloc(5, 1, p.backward);
  p.free(5);
  p.end_step();
  p.free(4);  // after the pass
  save(6, 99);
  p.mark(MarkKind::kRole, 6, 1);  // a parameter
  p.free(6);
  p.alloc(7, 5, p.forward);  // not saved
  p.free(7);
  MemorySource source(p.events, 4096);
  source.mutable_tables() = p.tables;
  const auto evidence = gather_graph_lives(source, {});
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->backward_passes, 2u);
  ASSERT_EQ(evidence->by_stack.size(), 1u);
  const GraphLives& lives = evidence->by_stack.at(p.forward);
  EXPECT_EQ(lives.in_backward, 1u);
  EXPECT_EQ(lives.without_backward, 1u);
  EXPECT_EQ(lives.without_bytes, 20u);
  EXPECT_EQ(lives.after_backward, 1u);
  EXPECT_EQ(lives.after_bytes, 30u);
  EXPECT_EQ(evidence->allocated.at(p.forward).count, 5u);
  EXPECT_EQ(evidence->allocated.at(p.forward).largest_bytes, 99u);
}

/// Of two results that no pass came for, another operation reads one.
TEST(GraphLives, TellWhatOtherOperationsReadOfWhatNoPassCameFor) {
  ReplayedProgram p;
  for (const uint64_t address : {1, 2}) {
    p.alloc(address, 10, p.forward);
    p.mark(MarkKind::kSaved, address, kSavedIsOutput | kSavedHasHistory);
  }
  p.mark(MarkKind::kSaved, 2, kSavedHasHistory);
  p.free(1), p.free(2);
  MemorySource source(p.events, 4096);
  source.mutable_tables() = p.tables;
  const auto evidence = gather_graph_lives(source, {});
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->by_stack.at(p.forward).without_backward, 2u);
  EXPECT_EQ(evidence->by_stack.at(p.forward).read_by_others, 1u);
}

TEST(GraphLives, WhatAProgramKeepsToItsEndNeededNoBackwardPassUnlessItFailed) {
  ReplayedProgram p;
  const auto save = [&](uint64_t address, uint64_t bytes) {
    p.alloc(address, bytes, p.forward);
    p.mark(MarkKind::kSaved, address, kSavedIsOutput | kSavedHasHistory);
  };
  save(1, 10);  // a pass comes by
  p.alloc(2, 1, p.backward);
  p.free(2);
  p.end_step();
  save(3, 20);
  const auto lives_of = [&](const ProgramEnds& ends) {
    MemorySource source(p.events, 4096);
    source.mutable_tables() = p.tables;
    const auto evidence = gather_graph_lives(source, ends);
    return evidence && evidence->by_stack.contains(p.forward)
               ? evidence->by_stack.at(p.forward)
               : GraphLives{};
  };
  EXPECT_EQ(lives_of({}).without_backward, 0u) << "nobody knows how it ended";
  p.tables.processes[0].exited_cleanly = true;
  EXPECT_EQ(lives_of({}).without_backward, 1u);
  EXPECT_EQ(lives_of({}).without_bytes, 20u);
  EXPECT_EQ(lives_of({.failure = "SIGKILL ended the program"}).without_backward, 0u);
  p.alloc(4, 1, p.backward);  // the last pass ends with the program
  EXPECT_EQ(lives_of({}).without_backward, 0u);
}

/// Latents are made with their graph; passes of another model, and of a module beside it, come by.
TEST(GraphLives, APassThroughOtherModelsIsNoneOfTheGraphs) {
  const auto lives_of = [](std::string_view made_by, std::string_view passed, bool has_history) {
    ReplayedProgram p;
    const uint32_t encoder = p.label(p.stacks[2], kModuleFile, made_by);
    const uint32_t other = p.label(p.label(p.stacks[3], kModuleFile, passed), kBackwardFile, "Mm");
    p.alloc(1, 40, encoder);
    p.mark(MarkKind::kSaved, 1, kSavedHasHistory | (has_history ? 0 : kSavedIsConstant));
    p.alloc(2, 1, other);
    p.free(2);
    p.end_step();
    p.free(1);
    MemorySource source(p.events, 4096);
    source.mutable_tables() = p.tables;
    const auto evidence = gather_graph_lives(source, {});
    return evidence ? evidence->by_stack.at(encoder) : GraphLives{};
  };
  EXPECT_EQ(lives_of("vae.encoder.0", "net.encoder.0", true).without_bytes, 40u);
  EXPECT_EQ(lives_of("vae.encoder.0", "vae.encoder.1", true).after_bytes, 40u) << "beside it";
  EXPECT_EQ(lives_of("vae.encoder.0", "vae.encoder.1.conv", true).after_bytes, 40u);
  EXPECT_EQ(lives_of("vae.encoder.0", "net.encoder.0", false).after_bytes, 40u)
      << "a frozen model's result: the graph of what read it was passed";
  EXPECT_EQ(lives_of("vae.encoder.0", "", true).after_bytes, 40u) << "modules are not known";
}

TEST(GraphLives, WhatIsLoadedAndTakenOverIsTold) {
  ReplayedProgram p;
  const Frame frame{p.tables.strings.intern("/x/torch/serialization.py"), 0, 9};
  const uint32_t load = p.tables.stacks.push(0, p.tables.stacks.intern_frame(frame));
  p.alloc(1, 10, p.stacks[0]);
  p.alloc(2, 10, load);
  p.alloc(3, 10, load);  // the device's event 2
  p.mark(MarkKind::kRole, 1, 1);
  p.mark(MarkKind::kRole, 3, 4);  // an optimizer's state
  MemorySource source(p.events, 4096);
  source.mutable_tables() = p.tables;
  const auto evidence = gather_graph_lives(source, {});
  ASSERT_TRUE(evidence && evidence->loaded_and_used.contains(0));
  EXPECT_EQ(evidence->loaded_and_used.at(0), absl::flat_hash_set<uint64_t>{2});
}

TEST(GraphLives, WhatIsFirstSavedAfterALaterBackwardPassIsData) {
  ReplayedProgram p;
  p.alloc(1, 10, p.stacks[0]);  // made before the first pass, saved in the second
  p.alloc(2, 1, p.backward);
  p.free(2);
  p.end_step();
  p.mark(MarkKind::kSaved, 1, kSavedIsOutput | kSavedHasHistory);
  p.mark(MarkKind::kSaved, 1, kSavedIsOutput | kSavedHasHistory);
  p.alloc(2, 1, p.backward);
  p.free(2);
  p.end_step();
  p.free(1);
  MemorySource source(p.events, 4096);
  source.mutable_tables() = p.tables;
  const auto evidence = gather_graph_lives(source, {});
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->by_stack.at(p.stacks[0]).data, 1u);
  EXPECT_EQ(evidence->by_stack.at(p.stacks[0]).after_backward, 1u);
}

TEST(GraphLives, TellWhatWasTrainedAndWhenItsPassesStopped) {
  ReplayedProgram p;
  const uint32_t other = p.tables.stacks.push(p.backward, p.tables.stacks.intern_frame({}));
  const uint32_t name = p.tables.strings.intern("exp_avg of 0.weight");
  p.events.marks.push_back({0, MarkKind::kRole, 0, name, 1, 64, 4});  // an optimizer's state
  p.mark(MarkKind::kRole, 65, 3);                                     // a gradient
  for (uint64_t pass = 1; pass <= 7; ++pass) {
    p.alloc(pass, 1, pass == 2 || pass == 5 ? other : p.backward);
    p.end_step();
  }
  MemorySource source(p.events, 4096);
  source.mutable_tables() = p.tables;
  const auto evidence = gather_graph_lives(source, {});
  ASSERT_TRUE(evidence);
  EXPECT_EQ(evidence->backward_passes, 7u);
  ASSERT_EQ(evidence->optimizer_states.size(), 1u);
  EXPECT_TRUE(evidence->optimizer_states.contains({0, name}));
  EXPECT_EQ(evidence->allocated.at(other).last_pass, 5u);
  EXPECT_EQ(evidence->allocated.at(other).longest_pause, 3u);
  EXPECT_EQ(evidence->allocated.at(p.backward).last_pass, 7u);
  EXPECT_EQ(evidence->allocated.at(p.backward).longest_pause, 2u);
}

/// Each step keeps 10 bytes, joins all that is kept, and multiplies that: 20 bytes for each 10, and 7.
ReplayedProgram bank(uint64_t steps, uint64_t joined_at_first) {
  ReplayedProgram p;
  for (uint64_t step = 1; step <= steps; ++step) {
    p.alloc(step, 10, p.stacks[0]);
    p.alloc(1001, joined_at_first + 10 * step, p.stacks[1]);
    p.alloc(1002, 7 + 20 * step, p.stacks[2]);
    p.free(1001);
    p.free(1002);
    p.end_step();
  }
  return p;
}

TEST(PracticeReplay, WhatIsComputedFromAllThatIsKeptIsAsLargeAsInTheFirstStep) {
  const auto peak = [](const ReplayedProgram& p, bool with_computed) {
    TraceChange change{.rule = Rule::kGoneAfterStep, .with_computed = with_computed};
    change.group_of[p.stacks[0]] = 0;
    return p.peak_with(change);
  };
  EXPECT_EQ(peak(bank(12, 0), false), 10u + 120 + 247);
  EXPECT_EQ(peak(bank(12, 0), true), 10u + 10 + 27);
  EXPECT_EQ(peak(bank(12, 3), true), 10u + 123 + 247) << "nothing is in proportion to what is kept";
  EXPECT_EQ(peak(bank(5, 0), true), 10u + 50 + 107) << "too few steps";
}

}  // namespace
}  // namespace gpumemprof

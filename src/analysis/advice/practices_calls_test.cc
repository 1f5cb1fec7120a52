// Which blocks are results that a loop keeps, which are graphs that wait, and which are neither.
#include <gtest/gtest.h>

#include "analysis/advice/practices.h"
#include "trace/label_frames.h"

namespace gpumemprof {
namespace {

using Evidence = std::vector<std::pair<std::string, uint64_t>>;

/// What a device holds at its peak, by the line that calls the model, and the module.
struct CallsAtPeak {
  CallsAtPeak() {
    tables.processes.resize(1);
    tables.devices.resize(1);
    analysis.devices.resize(1);
    analysis.devices[0].categories.is_known = true;
  }
  uint32_t stack(uint32_t line, const char* module, bool has_gradients = false) {
    const uint32_t caller = push(0, "/me/eval.py", "evaluate", line);
    uint32_t call = push(caller, "/x/torch/nn/modules/module.py", "Module._call_impl", 9);
    if (!has_gradients) call = push(call, kModeFile, "no grad", 0);
    return push(push(call, "/me/net.py", "Net.forward", 3), kModuleFile, module, 0);
  }
  uint32_t joined(const char* function) {
    return push(push(0, "/me/fit.py", "main", 42), "/x/transformers/trainer_pt_utils.py", function,
                86);
  }
  /// Activations of `count` calls; the line has called the model `calls` times in all.
  void save(uint32_t stack, uint64_t size_bytes, uint64_t count, uint64_t calls) {
    hold(stack, size_bytes, count, WhyUnknown::kNone);
    analysis.devices[0].categories.at_peak.back().category = Category::kActivation;
    graph.allocated[stack].count = calls;
  }
  void hold(uint32_t stack, uint64_t size_bytes, uint64_t count,
            WhyUnknown why = WhyUnknown::kKeptResult) {
    analysis.devices[0].figures.peak_bytes += size_bytes * count;
    analysis.devices[0].categories.at_peak.push_back(
        {.stack = stack, .why = why, .bytes = size_bytes * count, .count = count});
    graph.allocated[stack].by_size[size_bytes] = count;
    graph.allocated[stack].count = count;
  }
  std::vector<PracticeCandidate> found() const {
    std::vector<PracticeCandidate> out;
    find_call_practices({analysis, tables, graph}, &out);
    return out;
  }

  Analysis analysis;
  Tables tables;
  GraphEvidence graph;

 private:
  uint32_t push(uint32_t parent, std::string_view file, std::string_view text, uint32_t line) {
    const Frame frame{tables.strings.intern(file), tables.strings.intern(text), line};
    return tables.stacks.push(parent, tables.stacks.intern_frame(frame));
  }
};

TEST(CallPractices, ResultsOfEightCallsAreToldByTheLineThatCallsTheModel) {
  CallsAtPeak run;
  run.hold(run.stack(12, "head"), 1000, 7);
  EXPECT_TRUE(run.found().empty());
  run.hold(run.stack(20, "head"), 1000, 8);
  const auto found = run.found();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].advice.title,
            "8 results of eval.py:20 are live together: 7.81 KiB at the peak");
  EXPECT_EQ(found[0].advice.evidence, (Evidence{{"kept_bytes", 8000}, {"blocks", 8}}));
  EXPECT_EQ(found[0].change.stays_bytes, 2000u);
}

/// Autograd saved a layer's output that a hook collects: of what else it saved in these calls nothing
/// is left, so that no graph keeps the output.
TEST(CallPractices, WhatIsLeftOfGraphsThatAreGoneAreResults) {
  CallsAtPeak run;
  const uint32_t kept = run.stack(12, "stem", true);
  run.save(kept, 1000, 8, 8);
  const GraphLives not_needed{.without_backward = 8, .read_by_others = 8, .largest_bytes = 1000};
  run.graph.by_stack[kept] = not_needed;
  for (const char* other : {"body", "neck", "head"}) {
    run.graph.by_stack[run.stack(12, other, true)] = not_needed;
    run.graph.allocated[run.stack(12, other, true)].count = 8;
  }
  const auto is_of_graph = [&] {
    Candidates candidates;
    find_activation_practices({run.analysis, run.tables, run.graph}, &candidates);
    return candidates.at(0).change.group_of.contains(kept);
  };
  EXPECT_FALSE(is_of_graph());
  ASSERT_EQ(run.found().size(), 1u);
  EXPECT_EQ(run.found()[0].advice.kind, "results_kept");
  EXPECT_EQ(run.found()[0].advice.evidence, (Evidence{{"kept_bytes", 8000}, {"blocks", 8}}));
  run.save(run.stack(12, "body", true), 1000, 8, 8);
  EXPECT_TRUE(is_of_graph()) << "half of what was saved is there";
  EXPECT_TRUE(run.found().empty());
}

TEST(CallPractices, PredictionsThatATrainerJoinsAreToldByItsLine) {
  CallsAtPeak run;
  run.hold(run.joined("nested_concat"), 700, 1, WhyUnknown::kOutside);
  EXPECT_TRUE(run.found().empty());
  run.hold(run.joined("torch_pad_and_concatenate"), 4000, 2, WhyUnknown::kOutside);
  ASSERT_EQ(run.found().size(), 1u);
  const Advice advice = run.found()[0].advice;
  EXPECT_EQ(advice.kind, "results_kept");
  EXPECT_EQ(advice.title,
            "the Trainer's evaluation keeps the predictions of all batches, and copies them to add "
            "one (trainer_pt_utils.py:86): 7.81 KiB at the peak");
  EXPECT_EQ(advice.evidence, (Evidence{{"kept_bytes", 8000}, {"blocks", 2}}));
  EXPECT_TRUE(advice.fix.contains("preprocess_logits_for_metrics")) << advice.fix;
}

TEST(CallPractices, WhatALoopInTheModelMakesIsOfOneCall) {
  CallsAtPeak run;
  const uint32_t heads = run.stack(12, "attention");
  run.hold(heads, 1000, 8);
  run.graph.allocated[heads].count = 80;
  run.graph.allocated[run.stack(12, "head")].count = 10;  // calls
  EXPECT_TRUE(run.found().empty()) << "8 of each call";
  run.graph.allocated[heads].count = 10;
  EXPECT_EQ(run.found().size(), 1u);
}

TEST(CallPractices, ResultsAreCountedByTheirBlocksWhereSomeCallsLeaveALayerOut) {
  CallsAtPeak run;
  run.hold(run.stack(12, "head"), 1000, 47);
  run.graph.allocated[run.stack(12, "rare")].count = 16;
  ASSERT_EQ(run.found().size(), 1u);
  const Advice advice = run.found()[0].advice;
  EXPECT_TRUE(advice.title.starts_with("47 results of eval.py:12 ")) << advice.title;
  EXPECT_EQ(advice.evidence, (Evidence{{"kept_bytes", 47000}, {"blocks", 47}}));
}

TEST(CallPractices, PartsOfACacheAreInSeveralModules) {
  CallsAtPeak run;
  for (const char* layer : {"layers.0", "layers.1"}) run.hold(run.stack(12, layer), 1000, 9);
  EXPECT_TRUE(run.found().empty());
}

TEST(CallPractices, AllPartsOfAJoinedTensorAreAsLargeAsItBesideWhatTheAllocatorRounds) {
  for (const uint64_t joined : {8u * 1024u - 8 * 512, 8u * 1024u + 512}) {
    CallsAtPeak run;
    run.hold(run.stack(12, "head"), 1024, 8);
    run.hold(run.stack(13, ""), joined, 1, WhyUnknown::kOutside);
    const auto found = run.found();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].advice.evidence,
              (Evidence{{"kept_bytes", 8192}, {"blocks", 8}, {"joined_bytes", joined}}));
  }
  CallsAtPeak run;
  run.hold(run.stack(12, "head"), 1024, 8);
  run.hold(run.stack(13, ""), 8 * 1024 + 1024, 1, WhyUnknown::kOutside);
  EXPECT_EQ(run.found()[0].advice.evidence.size(), 2u);
}

TEST(CallPractices, GraphsOfCallsThatOneBackwardPassEndsWaitForIt) {
  CallsAtPeak run;
  run.save(run.stack(14, "body", true), 1000, 8, 80);
  run.save(run.stack(14, "head", true), 500, 8, 80);
  EXPECT_TRUE(run.found().empty()) << "no backward pass: the graphs are not needed";
  run.graph.backward_passes = 10;
  EXPECT_TRUE(run.found().empty()) << "no data of its own for each call: one goes on from another";
  run.hold(run.stack(13, ""), 64, 8, WhyUnknown::kNone);
  run.analysis.devices[0].categories.at_peak.back().category = Category::kInput;
  const auto found = run.found();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].advice.title,
            "graphs of 8 calls at eval.py:14 wait for one backward pass: 11.7 KiB at the peak");
  EXPECT_EQ(found[0].held_bytes, 12000u / 8 * 7);
  EXPECT_EQ(found[0].advice.evidence, (Evidence{{"graph_bytes", 12000}, {"calls", 8}}));
  run.graph.backward_passes = 11;
  EXPECT_TRUE(run.found().empty()) << "fewer than 8 calls a pass: some are kept from earlier ones";
}

/// A convolution that makes its result and three blocks of workspace in each of 8 calls, and batch
/// normalization that keeps three of its four.
TEST(CallPractices, WhatAnOperationMakesForItselfIsNoGraph) {
  CallsAtPeak run;
  run.graph.backward_passes = 10;
  const uint32_t convolution = run.stack(14, "conv", true), norm = run.stack(14, "norm", true);
  run.save(convolution, 1000, 8, 320);
  run.save(norm, 100, 24, 320);
  run.save(run.stack(14, "act", true), 10, 8, 80);
  run.graph.by_stack[convolution].in_backward = 80;
  run.graph.by_stack[norm].in_backward = 240;
  run.hold(run.stack(13, ""), 64, 8, WhyUnknown::kNone);
  run.analysis.devices[0].categories.at_peak.back().category = Category::kInput;
  const auto found = run.found();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].advice.evidence,
            (Evidence{{"graph_bytes", 8 * 1000 + 24 * 100 + 8 * 10}, {"calls", 8}}));
}

TEST(CallPractices, WhatALeakTellsIsNotToldTwice) {
  CallsAtPeak run;
  run.hold(run.stack(12, "head"), 1000, 8);
  Finding leak;
  leak.kind = FindingKind::kLeak;
  const uint32_t module = run.tables.stacks.node(run.stack(12, "head")).parent;
  leak.stack = module;  // Net.forward, the innermost line of the program's own
  run.analysis.findings.push_back(leak);
  EXPECT_TRUE(run.found().empty());
}

}  // namespace
}  // namespace gpumemprof

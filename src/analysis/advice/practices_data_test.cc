// What is data, and what only looks like it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/advice/practices.h"

namespace gpumemprof {
namespace {

/// A run of one device, with what it held at its peak, each made once.
struct DataAtPeak {
  DataAtPeak() {
    tables.processes.resize(1);
    tables.devices.resize(1);
    analysis.devices.resize(1);
    analysis.devices[0].categories.is_known = true;
  }
  void hold(CategoryHolder holder, uint64_t bytes, std::string_view file, uint32_t line,
            std::string_view function = "f") {
    const Frame user{tables.strings.intern("/me/train.py"), tables.strings.intern("fit"), line};
    const Frame made{tables.strings.intern(file), tables.strings.intern(function), 1};
    holder.stack = tables.stacks.push(0, tables.stacks.intern_frame(user));
    holder.stack = tables.stacks.push(holder.stack, tables.stacks.intern_frame(made));
    holder.bytes = bytes, holder.count = 1;
    analysis.devices[0].figures.peak_bytes += bytes;
    analysis.devices[0].categories.at_peak.push_back(holder);
    graph.allocated[holder.stack].count = 1;
    graph.allocated[holder.stack].largest_bytes = bytes;
  }
  std::vector<std::pair<std::string, uint64_t>> found() const {
    std::vector<PracticeCandidate> candidates;
    find_data_practices({analysis, tables, graph, line_text}, &candidates);
    std::vector<std::pair<std::string, uint64_t>> out;
    for (const PracticeCandidate& one : candidates)
      out.emplace_back(one.advice.kind, one.advice.evidence.front().second);
    return out;
  }

  Analysis analysis;
  Tables tables;
  GraphEvidence graph;
  LineText line_text;
};

LineText text_of_all(std::string_view text) {
  return [text](const Process&, const std::string&, uint32_t) { return std::string(text); };
}

using FoundData = std::vector<std::pair<std::string, uint64_t>>;

TEST(DataPractices, WhatIsMadeInAdvanceIsDataOnlyWhereAModelIsTrained) {
  DataAtPeak run;
  run.hold({.category = Category::kTemporary}, 10, "/me/train.py", 7);
  run.hold({.category = Category::kUnknown, .why = WhyUnknown::kOutside}, 1000, "/me/train.py", 4);
  run.line_text = text_of_all("data = torch.tensor(rows)");
  EXPECT_EQ(run.found(), FoundData{}) << "perhaps a KV cache";
  run.graph.backward_passes = 1;
  EXPECT_EQ(run.found(), (FoundData{{"data_in_memory", 1000}}));
  run.graph.backward_passes = 0;
  run.hold({.category = Category::kInput}, 500, "/me/train.py", 5);
  EXPECT_EQ(run.found(), (FoundData{{"data_in_memory", 500}}));
}

TEST(DataPractices, WhatIsMadeAfterTheLastBackwardPassIsNoDataOfTheTraining) {
  DataAtPeak run;
  run.line_text = text_of_all("features = torch.cat(parts)");
  run.graph.backward_passes = 3;
  run.hold({.category = Category::kTemporary}, 10, "/me/train.py", 7);
  run.hold({.category = Category::kUnknown, .why = WhyUnknown::kOutside}, 1000, "/me/train.py", 4);
  StackSizes& made = run.graph.allocated[run.analysis.devices[0].categories.at_peak[1].stack];
  made.last_pass = 3;
  EXPECT_EQ(run.found(), (FoundData{{"data_in_memory", 1000}}));
  made.last_pass = 4;
  EXPECT_EQ(run.found(), FoundData{});
}

TEST(DataPractices, WhatALibraryMakesWhereItIsCalledToComputeIsItsOwn) {
  DataAtPeak run;
  run.line_text = text_of_all("predicted = likelihood(model(x))");
  run.graph.backward_passes = 1;
  run.hold({.category = Category::kTemporary}, 10, "/me/train.py", 7);
  const std::string library = "/x/site-packages/gp/module.py";
  const CategoryHolder outside{.category = Category::kUnknown, .why = WhyUnknown::kOutside};
  run.hold(outside, 1000, library, 4);
  EXPECT_EQ(run.found(), (FoundData{{"data_in_memory", 1000}}));
  run.hold({.category = Category::kActivation}, 10, "/x/site-packages/torch/autograd/function.py", 4);
  EXPECT_EQ(run.found(), (FoundData{{"data_in_memory", 1000}})) << "f() is not Function.apply()";
  run.hold({.category = Category::kActivation}, 10, "/x/site-packages/torch/autograd/function.py", 4,
           "Function.apply");
  EXPECT_EQ(run.found(), FoundData{});
  run.hold(outside, 2000, "/me/train.py", 4);
  EXPECT_EQ(run.found(), (FoundData{{"data_in_memory", 2000}})) << "the line's own";
}

TEST(DataPractices, ABufferThatTheProgramFillsIsNoData) {
  DataAtPeak run;
  run.graph.backward_passes = 1;
  run.hold({.category = Category::kTemporary}, 10, "/me/train.py", 7);
  run.hold({.category = Category::kUnknown, .why = WhyUnknown::kOutside}, 1000, "/me/train.py", 4);
  EXPECT_EQ(run.found(), FoundData{}) << "nobody knows what the line does";
  for (const char* text : {"self.obs = torch.zeros(n, dim)", "x.new_full((n,), 1)",
                           "full(n, 2)", "torch.empty_like(x)", "fill_ones(a); np.ones(n)"}) {
    run.line_text = text_of_all(text);
    EXPECT_EQ(run.found(), FoundData{}) << text;
  }
  for (const char* text : {"torch.randn(n)", "fill_ones(n)", "zeros = torch.rand(n)"}) {
    run.line_text = text_of_all(text);
    EXPECT_EQ(run.found(), (FoundData{{"data_in_memory", 1000}})) << text;
  }
  run.hold({.category = Category::kInput}, 500, "/me/train.py", 5);
  run.line_text = text_of_all("rows = torch.zeros(n)");
  EXPECT_EQ(run.found(), FoundData{});
}

TEST(DataPractices, DataOfTwoLinesHasTheBytesOfEach) {
  DataAtPeak run;
  run.hold({.category = Category::kTemporary}, 8, "/x/site-packages/torch/random.py", 7);
  run.hold({.category = Category::kInput}, 500, "/x/site-packages/torch/random.py", 4);
  std::vector<PracticeCandidate> candidates;
  find_data_practices({run.analysis, run.tables, run.graph}, &candidates);
  EXPECT_TRUE(candidates.at(0).advice.title.contains("made at train.py:4 stays"));
  EXPECT_TRUE(candidates.at(0).advice.fix.starts_with("Read the data of train.py:4 in batches "));
  run.hold({.category = Category::kInput}, 300, "/x/site-packages/torch/random.py", 5);
  candidates.clear();
  find_data_practices({run.analysis, run.tables, run.graph}, &candidates);
  EXPECT_TRUE(candidates.at(0).advice.title.starts_with(
      "all data made at train.py:4 (500 B), train.py:5 (300 B) stays in memory for the whole run: "
      "800 B;"))
      << candidates[0].advice.title;
}

TEST(DataPractices, ACheckpointThatWasFreedWhenItWasCopiedIsNotKept) {
  DataAtPeak run;
  run.hold({.category = Category::kParameter}, 1000, "/me/train.py", 7);
  run.hold({.category = Category::kTemporary}, 1000, "/x/torch/serialization.py", 4);
  EXPECT_EQ(run.found(), FoundData{});
  run.hold({.category = Category::kWeightCopy}, 1000, "/x/torch/serialization.py", 5);
  EXPECT_EQ(run.found(), (FoundData{{"checkpoint_file_kept", 1000}}));
}

TEST(DataPractices, WhatWasLoadedAfterTheLastStepMayBeTheOptimizers) {
  DataAtPeak run;
  run.hold({.category = Category::kUnknown}, 1000, "/x/torch/serialization.py", 4);
  EXPECT_EQ(run.found(), (FoundData{{"checkpoint_file_kept", 1000}})) << "there is no optimizer";
  run.analysis.devices[0].categories.peak = {.steps = 3, .step_ended = false};
  EXPECT_EQ(run.found(), FoundData{});
  run.hold({.category = Category::kWeightCopy}, 500, "/x/torch/serialization.py", 5);
  EXPECT_EQ(run.found(), (FoundData{{"checkpoint_file_kept", 500}}));
}

/// Two workers, whose tasks make three blocks of 50 KiB each: 150 KiB.
TEST(DataPractices, PrefetchedBatchesAreWhatTasksMade) {
  DataAtPeak run;
  const Frame frame{run.tables.strings.intern("/v/torch/utils/data/_utils/worker.py"),
                    run.tables.strings.intern("_worker_loop"), 374};
  const uint32_t stack = run.tables.stacks.push(0, run.tables.stacks.intern_frame(frame));
  run.tables.processes.resize(3);
  run.analysis.devices.resize(3);
  run.graph.allocated[stack] = {.count = 300, .largest_bytes = 50 << 10};
  for (uint16_t worker = 1; worker <= 2; ++worker) {
    run.tables.devices.push_back({.process = worker, .layer = Layer::kHost});
    run.analysis.devices[worker].device = worker;
    run.graph.loader_batches[{worker, stack}] = {.tasks = 50, .largest_bytes = 150 << 10};
  }
  const auto titles = [&](uint64_t blocks_of_first, uint64_t blocks_of_second) {
    const auto blocks = [&](uint64_t count) { return Holder{stack, count * (50 << 10), count}; };
    run.analysis.devices[1].holders_at_peak = {blocks(blocks_of_first)};
    run.analysis.devices[2].holders_at_peak = {blocks(blocks_of_second)};
    std::vector<PracticeCandidate> found;
    find_data_practices({run.analysis, run.tables, run.graph}, &found);
    std::vector<std::string> out;
    for (const PracticeCandidate& one : found) out.push_back(one.advice.title);
    return out;
  };
  EXPECT_EQ(titles(6, 9), std::vector<std::string>{}) << "two, and one that is being made";
  EXPECT_EQ(titles(6, 12),
            std::vector<std::string>{
                "a DataLoader worker holds 600 KiB of prefetched batches, 150 KiB a batch"});
  EXPECT_EQ(titles(15, 12),
            std::vector<std::string>{"2 DataLoader workers hold up to 750 KiB each of prefetched "
                                     "batches, 150 KiB a batch"});
}

TEST(DataPractices, MappedFilesAreSuggestedOnlyBeforeTheFirstBackwardPass) {
  DataAtPeak run;
  run.hold({.category = Category::kWeightCopy}, 1000, "/x/torch/serialization.py", 5);
  const auto suggests = [&] {
    std::vector<PracticeCandidate> candidates;
    find_data_practices({run.analysis, run.tables, run.graph}, &candidates);
    return candidates.at(0).advice.fix.contains("mmap=True");
  };
  const uint32_t stack = run.analysis.devices[0].categories.at_peak[0].stack;
  run.graph.allocated[stack].last_pass = 1;
  EXPECT_TRUE(suggests());
  run.graph.allocated[stack].last_pass = 2;
  EXPECT_FALSE(suggests());
}

/// The same line makes 900 B in training, by other calls, and 100 B that stay after each round.
TEST(DataPractices, OfALeakWhatItsOwnCallsHaveOfThePeakIsTold) {
  DataAtPeak run;
  run.hold({.category = Category::kActivation}, 900, "/site-packages/torch/a.py", 9);
  run.hold({.category = Category::kActivation}, 100, "/site-packages/torch/b.py", 9);
  auto& device = run.analysis.devices[0];
  for (const CategoryHolder& one : device.categories.at_peak)
    device.holders_at_peak.push_back({one.stack, one.bytes, one.count});
  const uint32_t kept = device.holders_at_peak[1].stack;
  run.analysis.findings = {{.kind = FindingKind::kLeak,
                            .name = "activations_kept",
                            .stack = run.tables.stacks.node(kept).parent,
                            .stacks = {kept}}};
  const auto leak = std::pair<std::string, uint64_t>("activations_kept", 100);
  EXPECT_THAT(run.found(), testing::Contains(leak));
  device.holders_at_peak.pop_back();  // it began after the peak
  EXPECT_THAT(run.found(), testing::Not(testing::Contains(testing::Key("activations_kept"))));
}

/// A worker with 50 B at its peak leaks, as five others do; its parent holds 1,000 B.
TEST(DataPractices, ALeakOfAWorkerIsToldThoughItsParentHoldsMore) {
  DataAtPeak run;
  run.hold({.category = Category::kParameter}, 1000, "/me/train.py", 7);
  run.tables.processes.resize(2);
  run.tables.devices.push_back({.process = 1});
  DeviceAnalysis& worker = run.analysis.devices.emplace_back();
  worker.device = 1, worker.categories.is_known = true, worker.figures.peak_bytes = 50;
  const Frame frame{run.tables.strings.intern("/me/train.py"),
                    run.tables.strings.intern("serve"), 9};
  const uint32_t stack = run.tables.stacks.push(0, run.tables.stacks.intern_frame(frame));
  worker.categories.at_peak = {{.stack = stack, .bytes = 50, .count = 1}};
  worker.holders_at_peak = {{stack, 50, 1}};
  run.analysis.findings = {{.kind = FindingKind::kLeak,
                            .name = "worker_growth",
                            .title = "a worker keeps more",
                            .evidence = {{"processes", 6}},
                            .stack = stack,
                            .stacks = {stack},
                            .device = 1}};
  std::vector<PracticeCandidate> found;
  find_data_practices({run.analysis, run.tables, run.graph}, &found);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].advice.kind, "worker_growth");
  EXPECT_EQ(found[0].advice.title,
            "a worker keeps more; 6 processes do the same, and these are the figures of the worst");
  EXPECT_EQ(found[0].advice.evidence.front().second, 50u);
  EXPECT_EQ(found[0].change.device, 1);
}

}  // namespace
}  // namespace gpumemprof

// What is data, and what only looks like it.
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
  void hold(CategoryHolder holder, uint64_t bytes, std::string_view file, uint32_t line) {
    const Frame user{tables.strings.intern("/me/train.py"), tables.strings.intern("fit"), line};
    const Frame made{tables.strings.intern(file), tables.strings.intern("f"), 1};
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
    find_data_practices({analysis, tables, graph}, &candidates);
    std::vector<std::pair<std::string, uint64_t>> out;
    for (const PracticeCandidate& one : candidates)
      out.emplace_back(one.advice.kind, one.advice.evidence.front().second);
    return out;
  }

  Analysis analysis;
  Tables tables;
  GraphEvidence graph;
};

using FoundData = std::vector<std::pair<std::string, uint64_t>>;

TEST(DataPractices, WhatIsMadeInAdvanceIsDataOnlyWhereAModelIsTrained) {
  DataAtPeak run;
  run.hold({.category = Category::kTemporary}, 10, "/me/train.py", 7);
  run.hold({.category = Category::kUnknown, .why = WhyUnknown::kOutside}, 1000, "/me/train.py", 4);
  EXPECT_EQ(run.found(), FoundData{}) << "perhaps a KV cache";
  run.graph.backward_passes = 1;
  EXPECT_EQ(run.found(), (FoundData{{"data_in_memory", 1000}}));
  run.graph.backward_passes = 0;
  run.hold({.category = Category::kInput}, 500, "/me/train.py", 5);
  EXPECT_EQ(run.found(), (FoundData{{"data_in_memory", 500}}));
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

}  // namespace
}  // namespace gpumemprof

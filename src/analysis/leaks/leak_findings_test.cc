#include "analysis/leaks/leak_findings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

/// How many findings say that a line keeps `bytes` in each of 100 rounds.
ptrdiff_t findings_of_rounds_that_keep(uint64_t bytes) {
  Tables tables;
  tables.processes.resize(1);
  tables.threads.resize(1);
  tables.devices.push_back({.type = 0, .size_is_requested = true});
  const uint32_t file = tables.strings.intern("/srv/me/train.py");
  const auto line = [&](uint32_t number) {
    return tables.stacks.push(0, tables.stacks.intern_frame({.file = file, .line = number}));
  };
  const uint32_t keeps = line(7), drops = line(8);
  EventBatch events;
  uint64_t time = 0;
  for (uint64_t round = 0; round < 100; ++round) {
    append(&events, {.time_ns = ++time, .address = 1, .size_bytes = 5000, .stack = drops});
    append(&events,
           {.time_ns = ++time, .address = 100 + round, .size_bytes = bytes, .stack = keeps});
    append(&events, {.time_ns = ++time, .action = Action::kFreeCompleted, .address = 1});
  }
  MemorySource source(std::move(events));
  source.mutable_tables() = std::move(tables);
  AnalysisOptions options;
  options.find_leaks = true;
  const auto analysis = analyze_source(source, options);
  return std::ranges::count(analysis->findings, keeps, &Finding::stack);
}

TEST(LeakFindings, LessThanOneNumberAStepIsNoFinding) {
  EXPECT_EQ(findings_of_rounds_that_keep(4), 1);
  EXPECT_EQ(findings_of_rounds_that_keep(3), 0);
}

/// Three processes with a CPU device each, and two lines.
class FoldProcesses : public ::testing::Test {
 protected:
  FoldProcesses() {
    for (uint32_t process = 0; process < 3; ++process) {
      tables_.processes.emplace_back();
      tables_.devices.push_back({.process = process});
    }
    for (uint32_t line : {7, 9}) {
      lines_.push_back(tables_.stacks.push(0, tables_.stacks.intern_frame({.line = line})));
    }
  }
  Finding leak(uint16_t device, uint64_t bytes, Severity severity = Severity::kWarning) {
    return {.kind = FindingKind::kLeak, .severity = severity, .name = "worker_growth",
            .bytes = bytes,
            .stack = lines_[0], .device = device};
  }
  std::vector<Finding> folded(std::vector<Finding> findings) {
    fold_processes(tables_, &findings);
    return findings;
  }
  static uint64_t figure(const Finding& of, std::string_view name) {
    const auto found = std::ranges::find(of.evidence, name, &std::pair<std::string, uint64_t>::first);
    return found == of.evidence.end() ? 0 : found->second;
  }
  Tables tables_;
  std::vector<uint32_t> lines_;
};

TEST_F(FoldProcesses, OneBugIsToldOnceByTheProcessThatHoldsMost) {
  const auto told = folded({leak(0, 100), leak(1, 300), leak(2, 200)});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].device, 1);
  EXPECT_EQ(told[0].other_devices, (std::vector<uint16_t>{0, 2}));
  EXPECT_EQ(figure(told[0], "processes"), 3u);
  EXPECT_EQ(figure(told[0], "all_processes_bytes"), 600u);
}

TEST_F(FoldProcesses, TheMostSevereIsToldThoughAnotherHoldsMore) {
  const auto told = folded({leak(0, 100, Severity::kCritical), leak(1, 300)});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].device, 0);
  EXPECT_EQ(told[0].severity, Severity::kCritical);
}

TEST_F(FoldProcesses, OtherLinesBugsAndASecondOfOneProcessStayApart) {
  Finding other_line = leak(1, 300), other_bug = leak(2, 300);
  other_line.stack = lines_[1], other_bug.name = "hook_stores";
  EXPECT_EQ(folded({leak(0, 100), other_line, other_bug}).size(), 3u);
  EXPECT_EQ(folded({leak(0, 100), leak(0, 200), leak(1, 300)}).size(), 3u);
}

}  // namespace
}  // namespace gpumemprof

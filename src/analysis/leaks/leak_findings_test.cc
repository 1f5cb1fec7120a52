#include "analysis/leaks/leak_findings.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

/// The findings about a line that keeps `bytes` in each of 100 rounds. Round i takes the times from
/// 3 * i + 1 on, and its block is at address 100 + i.
std::vector<Finding> findings_of_rounds_that_keep(
    uint64_t bytes, const std::vector<ProcessHolders>* holders = nullptr) {
  Tables tables;
  tables.processes.push_back({.pid = 5, .start_ticks = 6});
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
  options.holders = holders;
  auto findings = analyze_source(source, options)->findings;
  std::erase_if(findings, [&](const Finding& one) { return one.stack != keeps; });
  return findings;
}

TEST(LeakFindings, LessThanOneNumberAStepIsNoFinding) {
  EXPECT_EQ(findings_of_rounds_that_keep(4).size(), 1u);
  EXPECT_EQ(findings_of_rounds_that_keep(3).size(), 0u);
}

/// What is said of the holder after a look that saw the first `rounds` blocks, each under a name of
/// its own.
std::string holder_after_a_look(uint64_t rounds) {
  std::vector<ProcessHolders> told(1);
  told[0].pid = 5, told[0].start_ticks = 6;
  HoldersLook& look = told[0].looks.emplace_back();
  look.time_ns = 3 * rounds + 1;
  for (uint64_t round = 0; round < rounds; ++round) {
    look.by_address[100 + round] = static_cast<uint32_t>(round);
    look.holders.push_back({.path = "a name", .owner = "variable"});
  }
  const std::vector<Finding> findings = findings_of_rounds_that_keep(4000, &told);
  for (const auto& [name, text] : findings.at(0).facts)
    if (name == "holder") return text;
  return "";
}

TEST(LeakFindings, ALookThatSawFewOfTheBlocksIsNoReasonThatNobodyHoldsThem) {
  EXPECT_EQ(holder_after_a_look(2),
            "unknown, because the looks saw only 2 of 100 blocks; record with gpumemprof run "
            "--explain-leaks to name it");
  EXPECT_EQ(holder_after_a_look(90),
            "unknown, because no name was found that holds most of it: names hold 90 of 90 blocks");
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

#include "analysis/leaks/leak_findings.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gpumemprof {
namespace {

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

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
      tables_.processes.push_back({.pid = process + 1});
      tables_.devices.push_back({.process = process});
      rooms_.push_back({.pid = process + 1, .limit_bytes = 9000, .free_bytes = 6000});
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
    fold_processes(tables_, &rooms_, &findings);
    return findings;
  }
  static uint64_t figure(const Finding& of, std::string_view name) {
    const auto found = std::ranges::find(of.evidence, name, &std::pair<std::string, uint64_t>::first);
    return found == of.evidence.end() ? 0 : found->second;
  }
  Tables tables_;
  std::vector<HostRoom> rooms_;
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

/// 6,000 bytes are left, of which they take 10, 20 and 30 a step.
TEST_F(FoldProcesses, ProcessesOfOneHostReachItsLimitTogether) {
  const auto keeps = [&](uint16_t device, uint64_t bytes_a_step) {
    Finding out = leak(device, 100 * bytes_a_step);
    out.evidence = {{"bytes_a_step", bytes_a_step},
                    {"steps", 100},
                    {"limit_bytes", 9000},
                    {"steps_until_limit", 6000 / bytes_a_step},
                    {"seconds_until_limit", 6000 / bytes_a_step / 10}};
    return out;
  };
  auto told = folded({keeps(0, 10), keeps(1, 20), keeps(2, 30)});
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(figure(told[0], "steps_until_limit"), 6000u / (10 + 20 + 30));
  EXPECT_EQ(figure(told[0], "seconds_until_limit"), 10u);
  EXPECT_EQ(figure(told[0], "all_processes_bytes_a_step"), 60u);
  EXPECT_EQ(told[0].severity, Severity::kCritical) << "100 more steps: as many as it ran";
  tables_.processes[1].host = rooms_[1].host = "another";
  told = folded({keeps(0, 10), keeps(1, 20), keeps(2, 30)});
  EXPECT_EQ(figure(told[0], "steps_until_limit"), 6000u / (10 + 30));
  rooms_[2].is_of_process = true;
  told = folded({keeps(0, 10), keeps(1, 20), keeps(2, 30)});
  EXPECT_EQ(figure(told[0], "steps_until_limit"), 6000u / 30) << "ulimit -v";
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

TEST_F(FoldProcesses, OneRetracedFunctionIsToldOnceByTheMemoryThatHasMost) {
  for (Device& device : tables_.devices) device.process = 0;
  std::vector<Finding> told;
  for (const uint16_t device : {0, 1, 2}) {
    told.push_back(leak(device, device == 1 ? 300 : 100));
    told.back().evidence = {{"bytes_a_step", 10}};
    if (device != 2) told.back().name = "function_retraced";
  }
  fold_memories(tables_, &told);
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].device, 1);
  EXPECT_EQ(told[0].facts.back(), std::pair(std::string("keeps_also"),
                                            device_name(tables_.devices[0]) + ", by 10 B a step"));
  EXPECT_EQ(figure(told[0], "all_memories_bytes_a_step"), 20u);
  EXPECT_EQ(told[1].name, "worker_growth");
}

}  // namespace
}  // namespace gpumemprof

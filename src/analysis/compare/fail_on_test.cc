#include "analysis/compare/fail_on.h"

#include <gtest/gtest.h>

#include "analysis/ranks/job_ranks.h"

namespace gpumemprof {
namespace {

Analysis with_peak(uint64_t bytes) {
  Analysis analysis;
  analysis.devices.emplace_back().figures.peak_bytes = bytes;
  return analysis;
}

Tables with_cpu() {
  Tables tables;
  tables.processes.resize(1);
  tables.devices.push_back({.type = 0});
  return tables;
}

std::vector<std::string> failures_of(const std::vector<FailCondition>& conditions,
                                     const Analysis& analysis, const Tables& tables) {
  const FailVerdict verdict = judge_conditions(conditions, analysis, tables);
  EXPECT_EQ(verdict.unknown, "");
  return verdict.failures;
}

TEST(FailOn, SeveralConditionsStandWithCommasBetween) {
  const auto conditions = parse_fail_conditions("leak, peak>20GiB");
  ASSERT_TRUE(conditions);
  ASSERT_EQ(conditions->size(), 2);
  EXPECT_EQ((*conditions)[0].finding, FindingKind::kLeak);
  EXPECT_EQ((*conditions)[1].peak_bytes, uint64_t{20} << 30);
}

TEST(FailOn, WhatIsNoConditionIsRefused) {
  for (const char* text : {"", "leaks", "leak,", "peak>", "peak>much", "peak<1GiB", "peak"}) {
    const auto conditions = parse_fail_conditions(text);
    ASSERT_FALSE(conditions) << text;
    EXPECT_EQ(conditions.error().code, ErrorCode::kUsage);
  }
}

TEST(FailOn, EveryKindOfFindingIsACondition) {
  std::string known = "oom, ";
  for (const char* name : finding_kind_names()) {
    const auto conditions = parse_fail_conditions(name);
    ASSERT_TRUE(conditions) << name;
    EXPECT_STREQ(finding_kind_name(*conditions->at(0).finding), name);
    known += name + std::string(name == finding_kind_names().back() ? " or " : ", ");
  }
  EXPECT_EQ(parse_fail_conditions("leaks").error().message,
            "unknown condition 'leaks'; known are " + known + "peak>SIZE");
}

TEST(FailOn, OfNothingNoConditionIsKnown) {
  const FailVerdict verdict =
      judge_conditions(*parse_fail_conditions("leak, peak>1GiB"), Analysis{}, with_cpu());
  EXPECT_TRUE(verdict.failures.empty());
  EXPECT_EQ(verdict.unknown, "leak, peak>1GiB: unknown whether it holds, because nothing was recorded");
}

TEST(FailOn, APeakFailsAboveItsBoundOnly) {
  const auto conditions = parse_fail_conditions("peak>1000");
  EXPECT_TRUE(failures_of(*conditions, with_peak(1000), with_cpu()).empty());
  const auto why = failures_of(*conditions, with_peak(1001), with_cpu());
  ASSERT_EQ(why.size(), 1);
  EXPECT_EQ(why[0], "the peak of cpu is 1001 B, more than 1000 B");
}

TEST(FailOn, SizesThatAreRoundedAlikeAreInBytes) {
  const auto conditions = parse_fail_conditions("peak>7550159");
  EXPECT_EQ(failures_of(*conditions, with_peak(7'550'160), with_cpu()),
            std::vector<std::string>{"the peak of cpu is 7550160 B, more than 7550159 B"});
}

TEST(FailOn, WhatWasLostMayHoldACondition) {
  const auto conditions = parse_fail_conditions("leak, peak>999,oom,peak>1000");
  Analysis analysis = with_peak(1000);
  analysis.loss.add(12, 0, "the disk was full");
  FailVerdict verdict = judge_conditions(*conditions, analysis, with_cpu());
  EXPECT_EQ(verdict.failures,
            std::vector<std::string>{"the peak of cpu is 1000 B, more than 999 B"});
  EXPECT_EQ(verdict.unknown,
            "leak, oom, peak>1000: unknown whether it holds, because events were lost");
  analysis.loss = {};
  EXPECT_EQ(judge_conditions(*conditions, analysis, with_cpu()).unknown, "");
  JobRanks ranks;
  ranks.missing_count = 1;
  analysis.ranks = std::make_shared<JobRanks>(ranks);
  EXPECT_EQ(judge_conditions(*conditions, analysis, with_cpu()).unknown,
            "leak, oom, peak>1000: unknown whether it holds, because a rank has no recording");
  analysis = {};  // nothing could be read
  analysis.loss.add(LossReason::kUncounted, 0, "not a chunk");
  verdict = judge_conditions(*conditions, analysis, with_cpu());
  EXPECT_TRUE(verdict.failures.empty());
  EXPECT_EQ(verdict.unknown,
            "leak, peak>999, oom, peak>1000: unknown whether it holds, because events may have been "
            "lost");
}

TEST(FailOn, AFindingFailsFromAWarningOn) {
  const auto conditions = parse_fail_conditions("leak");
  Analysis analysis = with_peak(1);
  analysis.findings.push_back(
      {.kind = FindingKind::kLeak, .severity = Severity::kInfo, .title = "kept"});
  EXPECT_TRUE(failures_of(*conditions, analysis, with_cpu()).empty());
  analysis.findings.push_back(
      {.kind = FindingKind::kLeak, .severity = Severity::kWarning, .title = "a.py:1"});
  analysis.findings.push_back(
      {.kind = FindingKind::kLeak, .severity = Severity::kWarning, .title = "a.py:2"});
  EXPECT_EQ(failures_of(*conditions, analysis, with_cpu()),
            std::vector<std::string>{"leak: a.py:1 (and 1 more)"});
}

TEST(FailOn, AProgramThatRanOutOfMemoryFailsThoughNoFindingSaysSo) {
  const auto conditions = parse_fail_conditions("oom");
  Analysis analysis = with_peak(1);
  EXPECT_TRUE(failures_of(*conditions, analysis, with_cpu()).empty());
  analysis.ends.refused.push_back({.requested = PrintedSize{.bytes = 1 << 20}});
  EXPECT_EQ(failures_of(*conditions, analysis, with_cpu()),
            std::vector<std::string>{"out_of_memory: 1.00 MiB were refused"});
  analysis.ends.refused.clear();
  analysis.ends.runs.push_back(
      {.signal = "SIGKILL", .kernel_kills = 1, .kills_are_of_cgroup = true});
  EXPECT_EQ(failures_of(*conditions, analysis, with_cpu()),
            std::vector<std::string>{"out_of_memory: the kernel's OOM killer ended the program"});
}

}  // namespace
}  // namespace gpumemprof

#include "analysis/series/rounds_for_tests.h"

#include <gtest/gtest.h>

#include "base/duration.h"

namespace gpumemprof {
namespace {

TEST(RecordingGrowth, SteadyGrowthIsToldByTheStep) {
  const auto one = [](size_t) { return 1; };
  const Analysis analysis = analyzed(rounds(100, true, kTwenty, one));
  const Finding* growth = found(analysis, FindingKind::kSteadyGrowth);
  ASSERT_NE(growth, nullptr);
  EXPECT_EQ(growth->severity, Severity::kCritical) << "80 MiB more than half of where it began";
  EXPECT_EQ(figure(*growth, "bytes_a_step"), kMiB);
  EXPECT_LT(*analysis.score.value, 10);
}

TEST(RecordingGrowth, WithoutStepsTheLineBehindTheGrowthIsNamed) {
  // From 599.6 ms on, a fifth of 2998: 240 rounds; and the 20 MiB of the last one.
  for (const auto& [is_since, end] :
       {std::pair(false, "; at the end t.py:7 held most, 300 MiB"),
        std::pair(true, "; t.py:7 made 92 % of what came then and stayed, 240 MiB")}) {
    MemorySource source = rounds(300, false, kTwenty, [](size_t) { return 1; }, kMs);
    Analysis analysis = *analyze_source(source, {.find_leaks = is_since});
    analysis.findings.clear();  // else its line is told already
    add_patterns(source.tables(), std::nullopt, &analysis);
    const Finding* growth = found(analysis, FindingKind::kSteadyGrowth);
    ASSERT_NE(growth, nullptr);
    EXPECT_TRUE(growth->title.ends_with(end)) << growth->title;
    EXPECT_EQ(growth->stack, 1);
    EXPECT_EQ(growth->fix, "") << "the line is named";
  }
}

TEST(RecordingGrowth, WhereALineIsKnownTheLeakIsTheFinding) {
  MemorySource source = rounds(100, true, kTwenty, [](size_t) { return 1; });
  Analysis analysis = *analyze_source(source, {});
  analysis.findings.push_back({.kind = FindingKind::kLeak, .severity = Severity::kWarning});
  add_patterns(source.tables(), std::nullopt, &analysis);
  EXPECT_EQ(found(analysis, FindingKind::kSteadyGrowth), nullptr);
  EXPECT_EQ(analysis.findings.front().kind, FindingKind::kLeak);
  const std::vector<SeriesPattern>& patterns = analysis.devices[0].patterns;
  EXPECT_TRUE(std::ranges::any_of(patterns, [](const SeriesPattern& one) {
    return one.pattern_type == "steady_growth" && one.severity == Severity::kInfo;
  }));
}

/// Growth of 80 MiB in 80 steps after the warm-up.
TEST(RecordingGrowth, LinesThatHaveHalfOfItAreTheFinding) {
  const auto is_told = [](FindingKind kind, uint64_t grown_mib) {
    MemorySource source = rounds(100, true, kTwenty, [](size_t) { return 1; });
    Analysis analysis = *analyze_source(source, {});
    analysis.findings.push_back({.kind = kind, .evidence = {{"grown_bytes", grown_mib * kMiB}}});
    add_patterns(source.tables(), std::nullopt, &analysis);
    return found(analysis, FindingKind::kSteadyGrowth) != nullptr;
  };
  EXPECT_FALSE(is_told(FindingKind::kFillsToLimit, 50));
  EXPECT_TRUE(is_told(FindingKind::kFillsToLimit, 30)) << "less than half of it";
  EXPECT_TRUE(is_told(FindingKind::kLeak, 50)) << "a small leak does not make it small";
}

TEST(RecordingGrowth, TheLineThatKeepsHalfOfItIsNamedWithWhatToDo) {
  for (const uint64_t grown_mib : {50, 30}) {
    MemorySource source = rounds(100, true, kTwenty, [](size_t) { return 1; });
    Analysis analysis = *analyze_source(source, {});
    analysis.findings.push_back({.kind = FindingKind::kGrowthInLoop,
                                 .evidence = {{"grown_bytes", grown_mib * kMiB}, {"times", 5}},
                                 .fix = "keep the last"});
    add_patterns(source.tables(), std::nullopt, &analysis);
    const Finding* growth = found(analysis, FindingKind::kSteadyGrowth);
    ASSERT_TRUE(growth);
    EXPECT_EQ(growth->fix == "keep the last", grown_mib == 50) << growth->fix;
  }
}

TEST(RecordingGrowth, WhatComesInTheStepsOfALineThatMayBeNeededIsNoWarning) {
  const auto is_told = [](size_t apart, uint64_t times) {
    MemorySource source =
        rounds(100, true, kTwenty, [&](size_t i) { return i % apart == apart - 1 ? apart : 0; });
    Analysis analysis = *analyze_source(source, {});
    analysis.findings.push_back({.kind = FindingKind::kGrowthInLoop,
                                 .evidence = {{"grown_bytes", 10 * kMiB}, {"times", times}}});
    add_patterns(source.tables(), std::nullopt, &analysis);
    const Finding* growth = found(analysis, FindingKind::kSteadyGrowth);
    return growth && growth->severity != Severity::kInfo;
  };
  EXPECT_TRUE(is_told(1, 5)) << "every step adds as much";
  EXPECT_TRUE(is_told(10, 4)) << "a line comes half as often";
  EXPECT_FALSE(is_told(10, 8));
}

/// A floor of 1 MiB, to which each step adds `a_step` bytes; a rise of `high` MiB in each.
MemorySource slow(size_t steps, uint64_t a_step, uint64_t high) {
  SteppedProgram program;
  program.allocate(1);
  for (size_t i = 0; i < steps; ++i) {
    program.allocate_bytes(a_step);
    program.step({high});
  }
  return program.source();
}

/// As a leak: a cost of 1 MiB in ten thousand steps, and of 1 % of the peak.
TEST(RecordingGrowth, ItIsAWarningByWhatALongRunWouldHold) {
  const auto severity = [](uint64_t a_step, uint64_t high) {
    const Analysis analysis = analyzed(slow(3600, a_step, high));
    const Finding* growth = found(analysis, FindingKind::kSteadyGrowth);
    return growth ? std::optional(growth->severity) : std::nullopt;
  };
  EXPECT_EQ(severity(96, 10), Severity::kInfo) << "960 kB after ten thousand steps";
  EXPECT_EQ(severity(128, 10), Severity::kWarning) << "1.28 MB";
  EXPECT_EQ(severity(128, 200), Severity::kInfo) << "less than 1 % of 202 MiB";
}

/// Steps that are alike but for the time that they take: 2 ms, every third 90 ms.
TEST(RecordingGrowth, StepsAreCountedHoweverLongEachTakes) {
  for (const size_t count : {9, 10, 40}) {
    SteppedProgram program;
    program.allocate(10);
    for (size_t i = 0; i < count; ++i) {
      program.wait(i % 3 == 0 ? 90 : 2);
      program.step({100});
    }
    const Analysis analysis = analyzed(program.source());
    const Finding* sawtooth = found(analysis, FindingKind::kSawtooth);
    ASSERT_NE(sawtooth, nullptr) << count;
    EXPECT_EQ(figure(*sawtooth, "period_steps"), 1) << sawtooth->title;
    EXPECT_EQ(sawtooth->bytes, 100 * kMiB);
    EXPECT_EQ(found(analysis, FindingKind::kSpike), nullptr) << count;
  }
}

/// A few steps say nothing of the swings of the work after them.
TEST(RecordingGrowth, StepsOfAPartOfTheRunCountNothing) {
  SteppedProgram program;
  program.allocate(10);
  for (size_t i = 0; i < 4; ++i) program.step({100});
  for (size_t i = 0; i < 30; ++i) {
    const uint64_t block = program.allocate(100);
    program.wait(5);
    program.free(block);
    program.wait(5);
  }
  const Analysis analysis = analyzed(program.source());
  const Finding* sawtooth = found(analysis, FindingKind::kSawtooth);
  ASSERT_NE(sawtooth, nullptr);
  EXPECT_EQ(figure(*sawtooth, "period_steps"), std::nullopt) << sawtooth->title;
}

}  // namespace
}  // namespace gpumemprof

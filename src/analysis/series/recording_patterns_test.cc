#include "analysis/series/recording_patterns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>

#include "analysis/replay/snapshot_device.h"
#include "analysis/series/rounds_for_tests.h"
#include "base/duration.h"
#include "base/size.h"
#include "trace/memory_source.h"

namespace gpumemprof {
namespace {

TEST(RecordingPatterns, ASawtoothHasItsPeriodInSecondsAndSteps) {
  for (const bool with_steps : {true, false}) {
    const Analysis analysis = analyzed(rounds(100, with_steps, kTwenty, kNothing));
    const Finding* sawtooth = found(analysis, FindingKind::kSawtooth);
    ASSERT_NE(sawtooth, nullptr);
    EXPECT_EQ(sawtooth->bytes, 20 * kMiB);
    EXPECT_EQ(figure(*sawtooth, "period_ns"), 10 * kMs);
    EXPECT_EQ(figure(*sawtooth, "period_steps"),
              with_steps ? std::optional<uint64_t>(1) : std::nullopt);
    EXPECT_EQ(sawtooth->severity, Severity::kInfo);
    EXPECT_EQ(found(analysis, FindingKind::kSpike), nullptr);
    EXPECT_EQ(found(analysis, FindingKind::kSteadyGrowth), nullptr);
  }
}

TEST(RecordingPatterns, ALowSawtoothIsSeenByTheStepsAlone) {
  const auto low = [](size_t) { return 2; };  // of 102: below 1/16
  EXPECT_EQ(found(analyzed(rounds(100, false, low, kNothing)), FindingKind::kSawtooth), nullptr);
  const Analysis analysis = analyzed(rounds(100, true, low, kNothing));
  const Finding* sawtooth = found(analysis, FindingKind::kSawtooth);
  ASSERT_NE(sawtooth, nullptr);
  EXPECT_EQ(sawtooth->bytes, 2 * kMiB);
  EXPECT_EQ(figure(*sawtooth, "period_steps"), 1u);
}

/// `count` steps over a floor of 100 MiB.
template <class Rises>
Analysis of_steps(size_t count, Rises rises) {
  SteppedProgram program;
  program.allocate(100);
  for (size_t i = 0; i < count; ++i) program.step(rises(i));
  return analyzed(program.source());
}

TEST(RecordingPatterns, RisesThroughMostOfAStepAreCountedInIt) {
  const Analysis four =
      of_steps(60, [](size_t) { return std::vector<uint64_t>{20, 19, 20, 20}; });
  const Finding* sawtooth = found(four, FindingKind::kSawtooth);
  ASSERT_NE(sawtooth, nullptr);
  EXPECT_EQ(sawtooth->title, "memory swings by 19.0 MiB 4 times a step of 10 ms");
  EXPECT_EQ(figure(*sawtooth, "cycles"), 4 * 48) << "without the first fifth of the steps";
  EXPECT_EQ(figure(*sawtooth, "cycles_a_step"), 4u);
  EXPECT_EQ(figure(*sawtooth, "period_ns"), 10 * kMs / 4);
}

TEST(RecordingPatterns, RisesThatAreUnlikeOrDifferFromStepToStepAreOneSwing) {
  const auto unlike = [](size_t) { return std::vector<uint64_t>{20, 12}; };
  const auto changing = [](size_t i) { return std::vector<uint64_t>(1 + i % 2, 20); };
  for (const Analysis& analysis : {of_steps(60, unlike), of_steps(60, changing)}) {
    const Finding* sawtooth = found(analysis, FindingKind::kSawtooth);
    ASSERT_NE(sawtooth, nullptr);
    EXPECT_TRUE(sawtooth->title.starts_with("memory swings by 20.0 MiB once a step"));
    EXPECT_EQ(figure(*sawtooth, "period_steps"), 1u);
  }
}

/// Folds of so many steps of 2 ms each, with 20 MiB more, and 2 ms between them.
Analysis of_folds(const std::vector<size_t>& steps) {
  SteppedProgram program;
  program.allocate(100);
  for (size_t fold = 0; fold < 12; ++fold) {
    const uint64_t model = program.allocate(20);
    for (size_t i = 0; i < steps[fold % steps.size()]; ++i) program.step({});
    program.free(model);
    program.wait(2);
  }
  return analyzed(program.source());
}

TEST(RecordingPatterns, APeriodOfMoreStepsIsCountedNotDividedFromItsTime) {
  const Analysis analysis = of_folds({45});
  const Finding* sawtooth = found(analysis, FindingKind::kSawtooth);
  ASSERT_NE(sawtooth, nullptr);
  EXPECT_EQ(sawtooth->title, "memory swings by 20.0 MiB every 45 steps (92 ms)") << "46 * 2 ms";
  EXPECT_EQ(figure(*sawtooth, "period_steps"), 45u);
}

TEST(RecordingPatterns, WhatDiffersHasAboutAPeriodOrNone) {
  EXPECT_TRUE(found(of_folds({40, 50}), FindingKind::kSawtooth)->title.contains(" about every "));
  EXPECT_EQ(found(of_folds({5, 10, 40, 90}), FindingKind::kSawtooth)->title,
            "memory swings by 20.0 MiB at irregular intervals");
}

TEST(RecordingPatterns, SpikesThatComeRegularlyHaveAPeriod) {
  const auto high = [](size_t i) { return i % 12 == 5 ? 90 : 10; };
  const Analysis analysis = analyzed(rounds(120, true, high, kNothing));
  const Finding* spike = found(analysis, FindingKind::kSpike);
  ASSERT_NE(spike, nullptr);
  EXPECT_EQ(spike->bytes, 80 * kMiB);
  EXPECT_EQ(figure(*spike, "period_steps"), 12u);
  EXPECT_EQ(figure(*spike, "period_ns"), 120 * kMs);
  EXPECT_EQ(figure(*spike, "highest_bytes"), 190 * kMiB);
}

TEST(RecordingPatterns, WhatComesRegularlyIsNoSpikeToBeScored) {
  for (const auto& [steps, period, first] : {std::array<size_t, 3>{120, 12, 5}, {60, 20, 1}}) {
    const auto high = [&](size_t i) { return i % period == first ? 300 : 10; };
    const Analysis analysis = analyzed(rounds(steps, true, high, kNothing));
    const Finding* spike = found(analysis, FindingKind::kSpike);
    EXPECT_EQ(spike->severity, Severity::kInfo);
    EXPECT_EQ(figure(*spike, "count"), steps / period);  // one of three is in the warm-up
    const auto part = std::ranges::find(analysis.score.parts, "spikes", &ScorePart::name);
    EXPECT_EQ(part->reason, "the spikes are regular, like the program's own work");
    EXPECT_EQ(analysis.score.value, 10.0);
  }
}

/// Epochs of 60 steps, each with an evaluation of 90 MiB at its end.
Analysis of_epochs(int count) {
  SteppedProgram program;
  program.allocate(100);
  for (int epoch = 0; epoch < count; ++epoch) {
    for (int i = 0; i < 60; ++i) program.step({10});
    const uint64_t predictions = program.allocate(90);
    program.wait(20);
    program.free(predictions);
  }
  program.free(program.allocate(1));
  return analyzed(program.source());
}

TEST(RecordingPatterns, AnEvaluationThatEndsEachEpochIsRegularWithTheOneAfterTheLastStep) {
  for (int epochs : {2, 3}) {
    const Analysis analysis = of_epochs(epochs);
    const Finding* spike = found(analysis, FindingKind::kSpike);
    ASSERT_NE(spike, nullptr) << epochs;
    EXPECT_EQ(spike->severity, Severity::kInfo) << epochs;
    EXPECT_EQ(figure(*spike, "count"), static_cast<uint64_t>(epochs));
    EXPECT_EQ(figure(*spike, "period_steps"), 60u) << epochs;
    EXPECT_NE(spike->title.find(": in " + std::to_string(epochs - 1) + " of " +
                                std::to_string(60 * epochs) +
                                " steps and after the last one, highest in step "),
              std::string::npos)
        << spike->title;
    EXPECT_EQ(analysis.score.value, 10.0) << epochs;
  }
}

TEST(RecordingPatterns, ASpikeIsAWarningAmongStepsAndNoneWhereItMayBeTheWorkItself) {
  const auto high = [](size_t i) { return i == 40 || i == 51 || i == 90 ? 400 : 10; };
  for (bool with_steps : {true, false}) {
    const Analysis analysis = analyzed(rounds(120, with_steps, high, kNothing));
    const Finding* spike = found(analysis, FindingKind::kSpike);
    ASSERT_NE(spike, nullptr) << with_steps;
    EXPECT_EQ(spike->severity, with_steps ? Severity::kWarning : Severity::kInfo);
    const auto part = std::ranges::find(analysis.score.parts, "spikes", &ScorePart::name);
    ASSERT_NE(part, analysis.score.parts.end());
    EXPECT_EQ(part->value.has_value(), with_steps);
    EXPECT_EQ(analysis.score.value == 10.0, !with_steps);
  }
}

TEST(RecordingPatterns, ASpikeIsToldOnTheClockOfThePeakFromTheStart) {
  const auto high = [](size_t i) { return i == 40 || i == 51 || i == 90 ? 400 : 10; };
  MemorySource source = rounds(120, false, high, kNothing, 2000 * kMs);
  source.mutable_tables().processes[0].first_time_ns = 500 * kMs;
  const Analysis analysis = analyzed(std::move(source));
  const Finding* spike = found(analysis, FindingKind::kSpike);
  ASSERT_NE(spike, nullptr);
  const auto after_first_event_ns = figure(*spike, "after_first_event_ns");
  ASSERT_TRUE(after_first_event_ns);
  EXPECT_NE(spike->title.find(", highest " +
                              format_seconds(1.5 + static_cast<double>(*after_first_event_ns) * 1e-9) +
                              " after the first event"),
            std::string::npos)
      << spike->title << ": the allocator's first event is 1.5 s after the recording's";
}

TEST(RecordingPatterns, ASpikeThatLastsForSeveralBucketsIsOne) {
  // 100 MiB for 1 s; for 8 ms 200 MiB are beside them, in five buckets of 2.1 ms.
  SteppedProgram program;
  program.allocate(100);
  program.wait(500);
  const uint64_t block = program.allocate(200);
  program.wait(8);
  program.free(block);
  program.wait(492);
  program.free(program.allocate(1));
  const Analysis analysis = analyzed(program.source());
  const Finding* spike = found(analysis, FindingKind::kSpike);
  ASSERT_NE(spike, nullptr);
  EXPECT_EQ(spike->bytes, 200 * kMiB);
  EXPECT_EQ(figure(*spike, "count"), 1u);
  EXPECT_EQ(figure(*spike, "period_ns"), std::nullopt);
}

TEST(RecordingPatterns, WhatWorkersDoAlikeIsToldOnce) {
  constexpr uint16_t kWorkers = 3;
  const auto regular = [](size_t i) { return i % 12 == 5 ? 90 : 10; };
  MemorySource one = rounds(120, true, regular, kNothing);
  Tables tables = one.tables();
  Analysis analysis = *analyze_source(one, {});
  const DeviceAnalysis device = analysis.devices[0];
  for (uint16_t i = 1; i < kWorkers; ++i) {
    tables.processes.push_back({.pid = i});
    tables.devices.push_back({.process = i, .size_is_requested = true});
    analysis.devices.push_back(device);
    analysis.devices.back().device = i;
  }
  add_patterns(tables, std::nullopt, &analysis);
  EXPECT_EQ(std::ranges::count(analysis.findings, FindingKind::kSpike, &Finding::kind), 1);
  EXPECT_TRUE(
      found(analysis, FindingKind::kSpike)->title.ends_with("; 2 more processes show the same pattern"));
  for (const DeviceAnalysis& each : analysis.devices)
    EXPECT_EQ(std::ranges::count(each.patterns, "spike", &SeriesPattern::pattern_type), 1);
}

TEST(RecordingPatterns, OnlyProcessesWithALikeSwingAreToldAsOne) {
  // Steps that swing by 20 MiB; the same in half of it, in less, and without steps.
  MemorySource one = rounds(100, true, kTwenty, kNothing);
  Tables tables = one.tables();
  Analysis analysis = *analyze_source(one, {});
  const auto add = [&](bool with_steps, uint64_t mib) {
    const auto high = [&](size_t) { return mib; };
    MemorySource other = rounds(100, with_steps, high, kNothing);
    const auto index = static_cast<uint16_t>(tables.devices.size());
    tables.processes.push_back({.pid = index});
    tables.devices.push_back({.process = index, .size_is_requested = true});
    analysis.devices.push_back(analyze_source(other, {})->devices[0]);
    analysis.devices.back().device = index;
  };
  add(true, 10);
  add(true, 9);
  add(false, 20);
  add(false, 19);
  add_patterns(tables, std::nullopt, &analysis);
  std::vector<std::string> titles;
  for (const Finding& finding : analysis.findings) titles.push_back(finding.title);
  const std::vector<std::string> wanted = {
      "memory swings by 20.0 MiB once a step (10 ms); 1 more process shows the same pattern",
      "memory swings by 9.00 MiB once a step (10 ms)",
      "memory swings by 20.0 MiB every 10 ms; 1 more process shows the same pattern"};
  EXPECT_EQ(titles, wanted);
}

TEST(RecordingPatterns, ASmallSwingOfAnotherProcessIsNoNewsBesideTheHighestOfItsType) {
  // The first peaks at 120 MiB, of which 5 % are 6; the others swing over a floor of 100 MiB.
  const auto findings = [](uint64_t mib, int8_t type) {
    MemorySource one = rounds(100, true, kTwenty, kNothing);
    Tables tables = one.tables();
    Analysis analysis = *analyze_source(one, {});
    const auto high = [&](size_t) { return mib; };
    MemorySource other = rounds(100, true, high, kNothing);
    tables.processes.push_back({.pid = 1});
    tables.devices.push_back({.process = 1, .type = type, .size_is_requested = true});
    analysis.devices.push_back(analyze_source(other, {})->devices[0]);
    analysis.devices.back().device = 1;
    add_patterns(tables, std::nullopt, &analysis);
    EXPECT_EQ(analysis.devices[1].patterns.size(), 1u);
    return analysis.findings.size();
  };
  EXPECT_EQ(findings(5, 0), 1u);
  EXPECT_EQ(findings(7, 0), 2u);
  EXPECT_EQ(findings(5, 1), 2u) << "the highest of an accelerator's";
}

/// Eight trials of 20 steps, each with 4 MiB more than the last, which it frees; `kept_mib` it does
/// not.
Analysis of_trials(uint64_t kept_mib) {
  SteppedProgram program;
  for (uint64_t trial = 1; trial <= 8; ++trial) {
    if (kept_mib != 0) program.allocate(kept_mib);
    const uint64_t model = program.allocate(4 * trial);
    for (int i = 0; i < 20; ++i) program.step({4});
    program.free(model);
    program.wait(1);
  }
  return analyzed(program.source());
}

TEST(RecordingPatterns, WhatIsFreedBetweenTrialsDoesNotGrow) {
  const Analysis freed = of_trials(0);
  EXPECT_EQ(found(freed, FindingKind::kSteadyGrowth), nullptr);
  EXPECT_EQ(freed.score.value, 10.0);
  const Finding* kept = found(of_trials(10), FindingKind::kSteadyGrowth);
  ASSERT_NE(kept, nullptr);
  EXPECT_GE(kept->severity, Severity::kWarning);
}

/// 300 blocks of 1 MiB of no known stack, one every 10 ms, that stay; of too few steps to tell a
/// trend, 60 blocks each, or of none.
MemorySource of_unknown_lines(bool with_steps) {
  EventBatch events;
  for (uint64_t i = 0; i < 300; ++i) {
    const uint64_t start = i * 10 * kMs;
    append(&events, {.time_ns = start, .address = 1 + i, .size_bytes = kMiB});
    if (!with_steps || i % 60 != 59) continue;
    events.marks.push_back({static_cast<uint32_t>(events.size()), MarkKind::kStep, 0, 0,
                            start + 9 * kMs, 0, i / 60});
  }
  MemorySource source(events);
  Tables& tables = source.mutable_tables();
  tables.processes.emplace_back();
  tables.threads.push_back({0, 11, "t"});
  tables.devices.push_back(Device{.size_is_requested = true});
  return source;
}

TEST(RecordingPatterns, WhereNoLineIsNamedTheFixIsWhatTheRecordingCanDo) {
  const auto fix = [](bool with_steps) {
    const Analysis analysis = analyzed(of_unknown_lines(with_steps));
    const Finding* growth = found(analysis, FindingKind::kSteadyGrowth);
    return growth ? growth->fix : "none";
  };
  EXPECT_EQ(fix(false),
            "record again with gpumemprof.step() in the loop; then gpumemprof diff --steps A B "
            "names the lines");
  EXPECT_EQ(fix(true),
            "gpumemprof diff --steps 2 4 on this recording names the lines that kept it");
}

TEST(RecordingPatterns, WhatOneForwardPassOfASnapshotAddsIsNoGrowth) {
  const auto grows = [](WorkPhase phase, bool is_recorded) {
    MemorySource source = of_unknown_lines(false);
    Analysis analysis = *analyze_source(source, {});
    DeviceAnalysis& device = analysis.devices[0];
    auto told = std::make_shared<SnapshotDevice>();
    told->is_recorded = is_recorded;
    device.snapshot = told;
    device.categories.at_peak = {{.bytes = device.figures.peak_bytes, .phase = phase}};
    add_patterns(source.tables(), std::nullopt, &analysis);
    const auto part = std::ranges::find(analysis.score.parts, "growth", &ScorePart::name);
    EXPECT_NE(found(analysis, FindingKind::kSteadyGrowth) == nullptr, part->value.has_value());
    return found(analysis, FindingKind::kSteadyGrowth) != nullptr;
  };
  EXPECT_FALSE(grows(WorkPhase::kForward, false));
  EXPECT_TRUE(grows(WorkPhase::kNone, false)) << "data that is loaded, or a leak";
  EXPECT_TRUE(grows(WorkPhase::kForward, true)) << "a recording marks steps, and its end is known";
}

TEST(RecordingPatterns, GrowthOfALoopThatMayBeDataHasNoScoreWhereItIsMuch) {
  // 100 MiB, and one more with each of 100 rounds.
  for (const auto& [grown_mib, is_much] : {std::pair{99, true}, std::pair{10, false}}) {
    MemorySource source = rounds(100, false, kTwenty, [](size_t) { return 1; });
    Analysis analysis = *analyze_source(source, {});
    analysis.findings.push_back({.kind = FindingKind::kGrowthInLoop,
                                 .evidence = {{"grown_bytes", grown_mib * kMiB}}});
    add_patterns(source.tables(), std::nullopt, &analysis);
    EXPECT_EQ(analysis.score.value.has_value(), !is_much);
    EXPECT_EQ(analysis.score.reason,
              is_much ? "what grows in its loop may be needed or a leak" : "");
  }
}

TEST(RecordingPatterns, MuchThatStaysAfterTheLastStepHasNoScoreWhereNobodyKnowsWhy) {
  // 50 steps of 100 to 120 MiB, then blocks of 1 MiB that stay.
  for (const auto& [after, is_much] : {std::pair{80, true}, std::pair{40, false}}) {
    SteppedProgram program;
    program.allocate(100);
    for (int i = 0; i < 50; ++i) program.step({20});
    for (int i = 0; i < after; ++i) program.allocate(1), program.wait(1);
    const Analysis analysis = analyzed(program.source());
    // 180 - 120 = 60 MiB, a third of 180; 140 - 120 = 20, a seventh of 140.
    EXPECT_EQ(analysis.score.value.has_value(), !is_much) << after;
    EXPECT_EQ(analysis.score.hides_growth, is_much) << after;
    EXPECT_EQ(analysis.score.reason,
              is_much ? "60.0 MiB more than any step had were allocated after the last step and live "
                        "at the end"
                      : "");
  }
}

TEST(RecordingPatterns, ALeakAfterTheLastStepIsMeasuredAgainstTheLevelAtTheEnd) {
  // 100 MiB in steps, 100 more after them, of which the leak grew by 50: a quarter of 200.
  SteppedProgram program;
  program.allocate(100);
  for (int i = 0; i < 50; ++i) program.step({20});
  for (int i = 0; i < 100; ++i) program.allocate(1), program.wait(1);
  MemorySource source = program.source();
  Analysis analysis = *analyze_source(source, {});
  analysis.findings.push_back({.kind = FindingKind::kLeak,
                               .severity = Severity::kWarning,
                               .evidence = {{"grown_bytes", 50 * kMiB}}});
  add_patterns(source.tables(), std::nullopt, &analysis);
  const auto part = std::ranges::find(analysis.score.parts, "growth", &ScorePart::name);
  EXPECT_NEAR(*part->value, 6 * (1 - 0.25), 1e-9);
}

TEST(RecordingPatterns, LeaksBoundTheGrowthPartOfTheScore) {
  // 100 MiB at the end of every step. Growth weighs 4, spikes 1.5 and, without a leak, cleanup 1.5;
  // there is no limit for the peak.
  const auto score = [](std::vector<uint64_t> grown_mib, Severity severity, uint16_t device) {
    MemorySource source = rounds(100, true, kTwenty, kNothing);
    Analysis analysis = *analyze_source(source, {});
    for (uint64_t mib : grown_mib) {
      analysis.findings.push_back({.kind = FindingKind::kLeak,
                                   .severity = severity,
                                   .evidence = {{"grown_bytes", mib * kMiB}},
                                   .device = device});
    }
    add_patterns(source.tables(), std::nullopt, &analysis);
    return *analysis.score.value;
  };
  EXPECT_NEAR(score({}, Severity::kWarning, 0), 10, 1e-9);
  EXPECT_NEAR(score({50}, Severity::kWarning, 0), (4 * 3 + 15) / 5.5, 1e-9);
  EXPECT_NEAR(score({25, 50}, Severity::kCritical, 0), (4 * 1.5 + 15) / 5.5, 1e-9);
  EXPECT_NEAR(score({70, 50}, Severity::kWarning, 0), 15 / 5.5, 1e-9);
  EXPECT_NEAR(score({50}, Severity::kInfo, 0), 10, 1e-9);
  EXPECT_NEAR(score({50}, Severity::kWarning, 1), 10, 1e-9) << "of another device";
}

TEST(RecordingPatterns, TheScoreHasThePeakWhereTheLimitIsKnown) {
  const Analysis calm = analyzed(rounds(100, true, kTwenty, kNothing), 1000 * kMiB);
  EXPECT_EQ(calm.score.value, 10.0);
  const Analysis tight = analyzed(rounds(100, true, kTwenty, kNothing), 120 * kMiB);
  EXPECT_NEAR(*tight.score.parts.front().value, 0, 1e-9) << "the peak is the limit";
  EXPECT_NEAR(*tight.score.value, 7, 1e-9) << "growth 4, cleanup 1.5, spikes 1.5 of 10";
}

TEST(RecordingPatterns, FragmentationIsScoredByWhatIsLostOfTheReservedAtThePeak) {
  const auto part = [](uint64_t lost_mib, uint64_t at_most_mib = 0) {
    MemorySource source = rounds(100, true, kTwenty, kNothing);
    Analysis analysis = *analyze_source(source, {});
    auto told = std::make_shared<SnapshotDevice>();
    told->is_consistent = true;
    told->at_peak.emplace();
    told->at_peak->pinned_bytes = lost_mib * kMiB;
    told->at_peak->figures.reserved_bytes = 200 * kMiB;
    told->at_peak->free.largest_bytes = kMiB;  // says nothing of how much is lost
    told->at_most_reserved = told->at_peak;
    told->at_most_reserved->pinned_bytes = at_most_mib * kMiB;
    analysis.devices[0].snapshot = told;
    add_patterns(source.tables(), std::nullopt, &analysis);
    return *std::ranges::find(analysis.score.parts, "fragmentation", &ScorePart::name)->value;
  };
  EXPECT_NEAR(part(0), 10, 1e-9);
  EXPECT_NEAR(part(3), 9.85, 1e-9) << "1.5 %";
  EXPECT_NEAR(part(11), 9.45, 1e-9) << "5.5 %";
  EXPECT_NEAR(part(200), 0, 1e-9);
  EXPECT_NEAR(part(3, 50), 7.5, 1e-9) << "a quarter where most was reserved";
}

TEST(RecordingPatterns, OfTwoDevicesWithOneScoreThePartsAreThoseOfTheHigherPeak) {
  // The first has no spike; the second, 400 MiB higher, has some that may be its work.
  const auto high = [](size_t i) { return i == 40 || i == 51 || i == 90 ? 400 : 10; };
  MemorySource calm = rounds(120, false, [](size_t) { return 10; }, kNothing);
  MemorySource spiky = rounds(120, false, high, kNothing);
  Tables tables = calm.tables();
  tables.devices.push_back(tables.devices[0]);
  Analysis analysis = *analyze_source(calm, {});
  analysis.devices.push_back((*analyze_source(spiky, {})).devices[0]);
  analysis.devices[1].device = 1;
  add_patterns(tables, std::nullopt, &analysis);
  EXPECT_EQ(analysis.devices[0].score.value, analysis.devices[1].score.value);
  const auto part = std::ranges::find(analysis.score.parts, "spikes", &ScorePart::name);
  EXPECT_EQ(part->reason, "without steps a spike cannot be told from normal work");
}

TEST(RecordingPatterns, ATooShortRecordingHasNoScoreAndSaysWhy) {
  MemorySource source{EventBatch{}};
  EXPECT_FALSE(analyzed(std::move(source)).score.value);
}

}  // namespace
}  // namespace gpumemprof

// Made series whose answers are known beforehand, the ones on which samplers' leak searches
// commonly go wrong among them.
#include "analysis/series/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "base/size.h"

namespace gpumemprof {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kMB = 1e6;

/// One sample a second.
SeriesReport ask(const std::vector<double>& bytes, SeriesOptions options = {}) {
  std::vector<double> times;
  for (size_t i = 0; i < bytes.size(); ++i) times.push_back(static_cast<double>(i));
  return analyze_series(times, bytes, options);
}

std::vector<double> made(size_t count, const std::function<double(double)>& of) {
  std::vector<double> out;
  for (size_t i = 0; i < count; ++i) out.push_back(of(static_cast<double>(i)));
  return out;
}

std::vector<std::string> finding_types(const SeriesReport& report) {
  std::vector<std::string> out;
  for (const SeriesFinding& finding : report.findings) out.push_back(finding.type);
  return out;
}
std::vector<std::string> pattern_types(const SeriesReport& report) {
  std::vector<std::string> out;
  for (const SeriesPattern& pattern : report.patterns) out.push_back(pattern.pattern_type);
  return out;
}
double evidence(const SeriesFinding& finding, std::string_view name) {
  for (const auto& [key, value] : finding.evidence) {
    if (key == name) return value;
  }
  ADD_FAILURE() << "no evidence " << name;
  return 0;
}

/// The same numbers on every machine.
double noise(double i) {
  const double x = std::sin(i * 12.9898) * 43758.5453;
  return x - std::floor(x) - 0.5;
}

TEST(Series, FiveMegabytesAStepForFifteenStepsAreALeak) {
  const SeriesReport report = ask(made(15, [](double i) { return 10e9 + 5 * kMB * i; }));
  ASSERT_THAT(finding_types(report), ElementsAre("monotonic_increase"));
  EXPECT_EQ(evidence(report.findings[0], "bytes_per_second"), 5 * kMB);
  EXPECT_EQ(report.findings[0].confidence, 1);
  EXPECT_THAT(pattern_types(report), ElementsAre("steady_growth"));
}

TEST(Series, WhatStillRisesAtTheEndHasNoScore) {
  const std::pair<const char*, std::vector<double>> rising[] = {
      {"doubles", made(40, [](double i) { return kMB * std::exp2(i / 2); })},
      {"began late", made(40, [](double i) { return 100 * kMB + 10 * kMB * std::max(0., i - 28); })},
      {"began at last", made(40, [](double i) { return 100 * kMB + 10 * kMB * std::max(0., i - 36); })},
      {"few", {100 * kMB, 110 * kMB, 125 * kMB, 131 * kMB, 150 * kMB, 149 * kMB, 170 * kMB,
               181 * kMB, 190 * kMB}},
  };
  for (const auto& [name, series] : rising) {
    const SeriesReport report = ask(series);
    EXPECT_THAT(finding_types(report), IsEmpty()) << name;
    EXPECT_EQ(report.score.value, std::nullopt) << name;
    EXPECT_THAT(report.score.reason, HasSubstr("rises to the end")) << name;
    EXPECT_EQ(report.unknown[1], std::pair(std::string("growth"), report.score.reason)) << name;
    EXPECT_EQ(rank_of_score(report.score), 6) << "no better than a leak";
  }
}

TEST(Series, OneLateStepOrAPartOfACycleIsNoRiseAtTheEnd) {
  const std::vector<double> calm[] = {
      made(40, [](double i) { return 100 * kMB + (i >= 36 ? 200 * kMB : 0) + kMB * noise(i); }),
      made(47, [](double i) { return 100 * kMB + 4 * kMB * std::fmod(i, 12); }),
      made(100, [](double i) { return 100 * kMB + 40 * kMB * noise(i); }),
      made(40, [](double i) { return 100 * kMB + (i > 30 ? 0.1 * kMB * (i - 30) : 0); }),
  };
  for (const std::vector<double>& series : calm)
    EXPECT_EQ(ask(series).score.value, 10.0) << &series - calm;
}

TEST(Series, AStaircaseThatRisesEverySecondSampleIsALeak) {
  const SeriesReport report =
      ask(made(20, [](double i) { return 1e9 + 100 * kMB * std::floor(i / 2); }));
  ASSERT_THAT(finding_types(report), ElementsAre("monotonic_increase"));
  EXPECT_EQ(evidence(report.findings[0], "rising_share"), 1) << "of the samples that changed";
  EXPECT_NEAR(evidence(report.findings[0], "bytes_per_second"), 50 * kMB, 5 * kMB);
}

TEST(Series, OneStepThatStaysIsNoLeak) {
  for (double step : {1., 5., 8., 12., 18.}) {
    const auto series = made(20, [&](double i) { return 1e9 + (i >= step ? 200 * kMB : 0); });
    EXPECT_THAT(ask(series).findings, IsEmpty()) << "step at " << step;
  }
}

TEST(Series, TwoHundredUpAndOneHundredFiftyDownIsNetGrowth) {
  const SeriesReport report = ask(made(24, [](double i) {
    return 1e9 + 50 * kMB * std::floor(i / 2) + (std::fmod(i, 2) == 1 ? 200 * kMB : 0);
  }));
  ASSERT_THAT(finding_types(report), Contains("monotonic_increase"));
  EXPECT_NEAR(evidence(report.findings[0], "bytes_per_second"), 25 * kMB, 3 * kMB);
}

TEST(Series, AWarmUpIsNoLeak) {
  const auto ramp = [](double i) { return 1e9 * std::min(1.0, i / 30); };
  EXPECT_THAT(ask(made(100, ramp)).findings, IsEmpty());
  const auto saturating = [](double i) { return 1e9 * (1 - std::exp(-i / 20)); };
  EXPECT_THAT(ask(made(100, saturating)).findings, IsEmpty());
  const auto short_one = [](double i) { return 1e9 * std::min(1.0, i / 4); };
  EXPECT_THAT(ask(made(15, short_one)).findings, IsEmpty());
}

TEST(Series, ALeakBehindALongWarmUpIsFound) {
  const SeriesReport report = ask(made(
      100, [](double i) { return 1e9 * std::min(1.0, i / 30) + 3 * kMB * std::max(0., i - 30); }));
  ASSERT_THAT(finding_types(report), ElementsAre("monotonic_increase"));
  EXPECT_NEAR(evidence(report.findings[0], "bytes_per_second"), 3 * kMB, 1e-3);
}

TEST(Series, ASawtoothIsNoLeakHoweverLongItsTeeth) {
  for (size_t period : {4u, 10u, 33u, 50u}) {
    const auto series = made(150, [&](double i) {
      return 1e9 + 10 * kMB * std::fmod(i, static_cast<double>(period)) * 10;
    });
    EXPECT_THAT(ask(series).findings, IsEmpty()) << "period " << period;
  }
  const SeriesReport report =
      ask(made(150, [](double i) { return 1e9 + 100 * kMB * std::fmod(i, 10); }));
  ASSERT_THAT(pattern_types(report), ElementsAre("sawtooth"));
  EXPECT_EQ(report.patterns[0].evidence[1], (std::pair<std::string, double>("period_s", 10)));
  EXPECT_EQ(report.patterns[0].evidence[2],
            (std::pair<std::string, double>("amplitude_bytes", 900 * kMB)));
}

TEST(Series, ALeakUnderASawtoothIsFoundByItsValleys) {
  const SeriesReport report = ask(made(205, [](double i) {
    return 1e9 + 100 * kMB * std::fmod(i, 10) + 20 * kMB * std::floor(i / 10);
  }));
  ASSERT_THAT(finding_types(report), Contains("monotonic_increase"));
  EXPECT_NEAR(evidence(report.findings[0], "bytes_per_second"), 2 * kMB, 1);
  EXPECT_THAT(pattern_types(report), ElementsAre("steady_growth", "sawtooth"));
}

TEST(Series, NoiseIsNeitherLeakNorSpike) {
  for (double share : {0.001, 0.01, 0.1}) {
    const auto series = made(500, [&](double i) { return 1e9 * (1 + share * noise(i)); });
    EXPECT_THAT(ask(series).findings, IsEmpty()) << share;
  }
}

TEST(Series, ALeakInNoiseIsFound) {
  const SeriesReport report =
      ask(made(500, [](double i) { return 1e9 + 1 * kMB * i + 40 * kMB * noise(i); }));
  ASSERT_THAT(finding_types(report), ElementsAre("monotonic_increase"));
  EXPECT_NEAR(evidence(report.findings[0], "bytes_per_second"), kMB, 0.05 * kMB);
}

TEST(Series, ASpikeIsNamedWithItsHeight) {
  const SeriesReport report =
      ask(made(100, [](double i) { return 1e9 + (i == 60 ? 2e9 : 0) + 1 * kMB * noise(i); }));
  ASSERT_THAT(finding_types(report), ElementsAre("spikes"));
  EXPECT_NEAR(report.findings[0].bytes, 2e9, 2 * kMB);
  EXPECT_EQ(evidence(report.findings[0], "seconds_after_start"), 60);
  EXPECT_THAT(report.findings[0].description, HasSubstr(", 1 min 00 s after the first sample"));
  EXPECT_EQ(report.findings[0].severity, Severity::kWarning) << "higher than all else";
  EXPECT_THAT(pattern_types(report), ElementsAre("spike"));
  EXPECT_EQ(report.patterns[0].description, report.findings[0].description);
}

TEST(Series, TheTopOfARampThatIsFreedAtOnceIsNoSpike) {
  // Ten blocks of 4 MB, one after the other, amid nothing; five samples before the top, 20 MB.
  const auto ramp = [](double i) { return i >= 60 && i < 70 ? (i - 59) * 4 * kMB : 0; };
  EXPECT_THAT(finding_types(ask(made(140, ramp))), Not(Contains("spikes")));
  const auto block = [](double i) { return i >= 68 && i < 70 ? 40 * kMB : 0; };
  EXPECT_THAT(finding_types(ask(made(140, block))), ElementsAre("spikes"));
}

TEST(Series, WhatARiseLeavesBehindIsInsufficientCleanup) {
  const SeriesReport report = ask(made(60, [](double i) {
    return i < 20 ? 100 * kMB : i < 40 ? 500 * kMB : 230 * kMB;
  }));
  ASSERT_THAT(finding_types(report), ElementsAre("insufficient_cleanup"));
  EXPECT_EQ(report.findings[0].bytes, 130 * kMB);
  EXPECT_THAT(report.findings[0].description, ::testing::StartsWith("Final memory 2.3x initial"));
}

TEST(Series, WhatFallsBackBeforeItRisesAgainWasReleased) {
  const SeriesReport report = ask(made(60, [](double i) {
    return i >= 20 && i < 40 ? 500 * kMB : i >= 45 ? 230 * kMB : 100 * kMB;
  }));
  EXPECT_THAT(report.findings, IsEmpty());
}

TEST(Series, OnlyWhatWasReleasedIsPraised) {
  const auto reason = [](const std::function<double(double)>& bytes) {
    const SeriesReport report = ask(made(60, bytes));
    return std::ranges::find(report.score.parts, "cleanup", &ScorePart::name)->reason;
  };
  EXPECT_EQ(reason([](double) { return 100 * kMB; }), "memory did not rise after the warm-up");
  EXPECT_EQ(reason([](double i) { return (i >= 20 && i < 40 ? 500 : 100) * kMB; }),
            "the rise was released");
  EXPECT_EQ(reason([](double i) { return (i >= 20 ? 500 : 100) * kMB; }),
            "less than a fifth of the rise was released");
  const auto falls = [](double i) {
    return (i < 20 ? 100 : i < 50 ? 500 : i < 58 ? 400 : 300) * kMB;
  };
  EXPECT_EQ(reason(falls), "memory still moves at the end");
}

TEST(Series, APeriodIsToldAsFarAsItIsOne) {
  // Teeth of so many samples each.
  const auto told = [](std::vector<int> teeth) {
    std::vector<double> bytes;
    for (size_t i = 0; i < 40; ++i) {
      const int length = teeth[i % teeth.size()];
      for (int at = 0; at < length; ++at) bytes.push_back(1e9 + 1e8 * (at == length - 1));
    }
    return ask(bytes).patterns.at(0).description;
  };
  EXPECT_THAT(told({4}), HasSubstr(", every 4.000 s"));
  EXPECT_THAT(told({4, 5}), HasSubstr(", about every "));
  EXPECT_THAT(told({2, 3, 4, 9}), HasSubstr(", at irregular intervals"));
}

TEST(Series, StepsThatAreMetAtAnyMomentKeepNothing) {
  // A step of five levels and 26 ms, sampled every 10 ms with the lateness of a busy machine.
  const std::array<double, 5> levels = {5 * kMiB, 7 * kMiB, 9 * kMiB, 11 * kMiB, 5 * kMiB};
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    std::vector<double> bytes;
    for (double ms = 0; ms < 26.0 * 60; ms += 10 + static_cast<double>(random() % 8)) {
      bytes.push_back(levels[static_cast<size_t>(std::fmod(ms, 26) / 26 * levels.size())]);
    }
    EXPECT_THAT(finding_types(ask(bytes)), Not(Contains("insufficient_cleanup"))) << seed;
  }
}

TEST(Series, WhatStaysUnderCyclesIsInsufficientCleanup) {
  const SeriesReport report = ask(made(300, [](double i) {
    return 100 * kMB * std::fmod(i, 10) / 9 + (i >= 150 ? 60 * kMB : 0) + 1e8;
  }));
  ASSERT_THAT(finding_types(report), ElementsAre("insufficient_cleanup"));
  EXPECT_EQ(report.findings[0].bytes, 60 * kMB);
}

TEST(Series, MemoryThatIsGivenBackIsNoFinding) {
  const auto series = made(60, [](double i) { return i >= 20 && i < 40 ? 500 * kMB : 100 * kMB; });
  EXPECT_THAT(ask(series).findings, IsEmpty());
}

TEST(Series, TheEndOfTheProgramHidesNoLeak) {
  auto series = made(60, [](double i) { return 1e9 + 10 * kMB * i; });
  series.insert(series.end(), {5e8, 1e8, 0});
  EXPECT_THAT(finding_types(ask(series)), ElementsAre("monotonic_increase"));
}

TEST(Series, AnEndInSeveralStepsHidesNoLeakEither) {
  auto bytes = made(50, [](double i) { return 40 * kMiB + 4 * kMiB * i; });
  for (double left : {231.0, 167.0, 87.0, 0.0}) bytes.push_back(left * kMiB);
  const SeriesReport report = ask(bytes);
  EXPECT_THAT(finding_types(report), Contains("monotonic_increase"));
}

TEST(Series, AnEndThatRestsOnItsWayDownHidesNoLeakEither) {
  auto bytes = made(50, [](double i) { return 40 * kMiB + 4 * kMiB * i; });
  for (double left : {231.0, 167.0, 115.0, 115.0, 0.0}) bytes.push_back(left * kMiB);
  EXPECT_THAT(finding_types(ask(bytes)), Contains("monotonic_increase"));
}

TEST(Series, ALevelBeforeTheEndIsNoPartOfTheEnd) {
  auto bytes = made(57, [](double i) { return i < 30 ? 40 * kMiB : 80 * kMiB; });
  for (double left : {20.0, 10.0, 0.0}) bytes.push_back(left * kMiB);
  std::vector<double> times(bytes.size());
  std::iota(times.begin(), times.end(), 0.0);
  EXPECT_EQ(prepared(times, bytes, {}).end, 57u);
}

TEST(Series, ASmallerSensitivityFindsLess) {
  const auto series = made(50, [](double i) { return 100 * kMiB + 0.04 * kMiB * i; });
  EXPECT_THAT(ask(series).findings, IsEmpty()) << "2 % of growth";
  EXPECT_THAT(finding_types(ask(series, {.sensitivity = 0.01})), ElementsAre("monotonic_increase"));
}

TEST(Series, FragmentationComesFromFreeBlocksAlone) {
  const auto flat = made(20, [](double) { return 1e9; });
  const SeriesReport blind = ask(flat);
  EXPECT_THAT(blind.patterns, IsEmpty());
  ASSERT_EQ(blind.unknown.size(), 1u);
  EXPECT_EQ(blind.unknown[0].first, "fragmentation");
  const SeriesReport seeing =
      ask(flat, {.free_blocks = FreeBlocks{.free_bytes = 1e9, .largest_free_block_bytes = 1e8}});
  ASSERT_THAT(pattern_types(seeing), ElementsAre("fragmentation"));
  EXPECT_NEAR(seeing.patterns[0].evidence[0].second, 0.9, 1e-12);
}

TEST(Series, NothingMeasuredHasNoScore) {
  for (size_t count : {0u, 1u, 5u}) {
    const SeriesReport report = ask(made(count, [](double) { return 1e9; }));
    EXPECT_FALSE(report.score.value) << count;
    EXPECT_THAT(report.score.reason, Not(IsEmpty()));
    EXPECT_THAT(report.findings, IsEmpty());
  }
}

TEST(Series, TheScoreIsTheWeightedMeanOfItsKnownParts) {
  const SeriesReport flat = ask(made(20, [](double) { return 1e9; }));
  EXPECT_EQ(flat.score.value, 10);
  const SeriesReport near_limit = ask(made(20, [](double) { return 0.9e9; }), {.limit_bytes = 1e9});
  // peak: halfway between 80 % and the limit is 5; growth, cleanup and spikes 10 each.
  EXPECT_NEAR(*near_limit.score.value, (5 * 3 + 10 * 4 + 10 * 1.5 + 10 * 1.5) / 10, 1e-9);
  const SeriesReport leak = ask(made(21, [](double i) { return 1e9 + 0.1e9 * i; }));
  // From sample 4 on the level more than doubles: growth is 0 of 10, and cleanup is not told.
  EXPECT_NEAR(*leak.score.value, (0 * 4 + 10 * 1.5) / 5.5, 1e-9);
}

TEST(Series, TheLimitIsForeseenFromTheSlope) {
  const SeriesReport report =
      ask(made(21, [](double i) { return 1e9 + 0.1e9 * i; }), {.limit_bytes = 4e9});
  ASSERT_EQ(report.insights.size(), 3u);
  EXPECT_EQ(report.insights[2].category, "limit");
  EXPECT_NEAR(report.insights[2].evidence[0].second, 10, 1e-6) << "1e9 left at 0.1e9 a second";
  EXPECT_EQ(report.findings[0].severity, Severity::kCritical);
}

TEST(Series, AProgramThatStartsUpIsNoLeak) {
  const auto grows = [](double i) { return 100 * kMB + 20 * kMB * i; };
  const SeriesReport first = ask(made(12, grows), {.least_growth_s = 12});
  EXPECT_THAT(first.findings, IsEmpty());
  EXPECT_FALSE(first.score.value);
  EXPECT_THAT(first.score.reason, HasSubstr("11.000 s of samples may be the program's start-up"));
  ASSERT_EQ(first.unknown.front().first, "growth");
  const SeriesReport then = ask(made(13, grows), {.least_growth_s = 12});
  EXPECT_THAT(finding_types(then), ElementsAre("monotonic_increase"));
}

TEST(Series, SamplesInAnyOrderAndNumbersThatAreNoneAreTaken) {
  std::vector<double> times = {3, 1, 2, 0, NAN, 5, 4, 7, 6, 8}, bytes;
  for (double t : times) bytes.push_back(1e9 + 10 * kMB * t);
  bytes[1] = -1;
  const SeriesReport report = analyze_series(times, bytes, {});
  EXPECT_EQ(report.samples, 8u);
  EXPECT_EQ(report.ignored_samples, 2u);
  EXPECT_EQ(report.peak_time_s, 8);
  EXPECT_THAT(finding_types(report), ElementsAre("monotonic_increase"));
}

}  // namespace
}  // namespace gpumemprof

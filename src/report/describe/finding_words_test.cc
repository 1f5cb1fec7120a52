#include "report/describe/end_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

Finding leak(std::vector<std::pair<std::string, uint64_t>> evidence) {
  return {.kind = FindingKind::kLeak, .bytes = 4096, .evidence = std::move(evidence)};
}

TEST(FindingWords, ALeakTellsItsGrowthItsBlocksItsModuleAndItsHolder) {
  Finding finding = leak({{"grown_bytes", 2048}, {"steps", 60}, {"warm_up_steps", 20}});
  finding.rates = {{"survivors_a_step", 0.333}};
  finding.facts = {{"module", "layers.1"}, {"holder", "losses in train (train.py)"}};
  finding.confidence = 0.99;
  EXPECT_EQ(finding_details(finding),
            (std::vector<std::string>{
                "Grew by 2.00 KiB in 60 steps after a warm-up of 20; 4.00 KiB are live after the "
                "last allocation (confidence 0.99)",
                "About 1 block in 3 steps stays live; most are made in module layers.1",
                "Held by: losses in train (train.py)"}));
  finding.facts.clear();
  EXPECT_EQ(finding_details(finding).at(1), "About 1 block in 3 steps stays live");
}

TEST(FindingWords, GrowthOfALoopWithoutAKnownStepIsToldByTheRound) {
  Finding finding = leak({{"grown_bytes", 2048}, {"steps", 13}, {"warm_up_steps", 6},
                          {"limit_bytes", 8192}, {"steps_until_limit", 90}});
  finding.kind = FindingKind::kGrowthInLoop;
  finding.rates = {{"survivors_a_step", 1}};
  finding.confidence = 0.99;
  EXPECT_EQ(finding_details(finding),
            (std::vector<std::string>{
                "Grew by 2.00 KiB in 13 rounds after a warm-up of 6; 4.00 KiB are live after the "
                "last allocation (confidence 0.99)",
                "About 1 block a round stays live",
                "The limit of 8.00 KiB is reached in 90 more rounds"}));
  finding.lines = {{1, "a.py:1", 9, 1024}};
  EXPECT_EQ(finding_details(finding).at(1), "Lines: a.py:1 1.00 KiB a round");
}

TEST(FindingWords, WhatADequeKeepsIsToldAsItWillBeWhenItIsFull) {
  Finding finding = leak({{"entries", 411}, {"most_entries", 50'000}, {"full_bytes", 8192},
                          {"steps_until_full", 6000}});
  const std::string full =
      "411 of at most 50,000 entries at the last look; at this size about 8.00 KiB when it is full";
  EXPECT_EQ(finding_details(finding), std::vector{full + ", after about 6,000 more steps"});
  finding.evidence.pop_back();
  EXPECT_EQ(finding_details(finding), std::vector{full});
  finding.facts.emplace_back("entries_limit", "ListStorage.max_size");
  EXPECT_EQ(finding_details(finding).at(0),
            "411 of at most 50,000 entries at the last look (by its ListStorage.max_size); at this "
            "size about 8.00 KiB when it is full");
  finding.evidence.emplace_back("limit_bytes", 6144);
  finding.evidence.emplace_back("steps_until_limit", 90);
  EXPECT_EQ(finding_details(finding).at(1), "The limit of 6.00 KiB is reached in 90 more steps");
}

TEST(FindingWords, WhatComesAFewTimesIsToldByTheStep) {
  Finding finding = leak({{"grown_bytes", 2048}, {"steps", 36}, {"warm_up_steps", 17},
                          {"times", 5}, {"steps_apart", 12}});
  finding.kind = FindingKind::kGrowthInLoop;
  finding.confidence = 0.99;
  EXPECT_EQ(finding_details(finding),
            (std::vector<std::string>{
                "Grew by 2.00 KiB in 36 steps after a warm-up of 17; 4.00 KiB are live after the "
                "last allocation (confidence 0.99)"}));
}

TEST(FindingWords, ABlockThatLargerOnesReplaceIsToldByWhatItGrows) {
  Finding finding = leak({{"bytes_a_step", 16384}, {"replaced_blocks", 1}});
  finding.facts = {{"module", "MoCo"}};
  EXPECT_EQ(finding_details(finding),
            (std::vector<std::string>{"1 block grows by 16.0 KiB a step: a larger one replaces it; "
                                      "it is made in module MoCo"}));
  finding.evidence[1].second = 24;
  EXPECT_EQ(finding_details(finding),
            (std::vector<std::string>{"24 blocks grow by 16.0 KiB a step together: larger ones "
                                      "replace them; most are made in module MoCo"}));
}

TEST(FindingWords, ALeakIsCalledALeakWhetherItsHolderIsKnownOrNot) {
  Finding finding = leak({{"bytes_a_step", 2048}, {"held_blocks", 3}});
  finding.severity = Severity::kWarning;
  finding.title = "a.py:7 keeps 2.00 KiB more with every step: cause unknown";
  EXPECT_EQ(finding_sentence(finding),
            "Leak: a.py:7 keeps 2.00 KiB more with every step: cause unknown.");
  finding.facts = {{"holder", "losses in train (a.py)"}};
  EXPECT_EQ(finding_sentence(finding),
            "Leak: losses in train (a.py) keeps 2.00 KiB more with every step (a.py:7).");
  finding.kind = FindingKind::kSteadyGrowth, finding.title = "memory grows";
  EXPECT_EQ(finding_sentence(finding), "Warning: memory grows.");
}

TEST(FindingWords, OfManyLinesTheFirstSixAreNamed) {
  Finding finding = leak({});
  const auto lines = [&](size_t count) {
    finding.lines.clear();
    for (uint32_t i = 0; i < count; ++i)
      finding.lines.push_back({i, "a.py:" + std::to_string(i), 9, 1024 * (9 - i)});
    return finding_details(finding).at(0);
  };
  EXPECT_EQ(lines(2), "Lines: a.py:0 9.00 KiB a step, a.py:1 8.00 KiB");
  EXPECT_THAT(lines(6), testing::EndsWith(", a.py:5 4.00 KiB"));
  EXPECT_THAT(lines(7), testing::EndsWith(", a.py:5 4.00 KiB, and 1 more line"));
  EXPECT_THAT(lines(8), testing::EndsWith(", a.py:5 4.00 KiB, and 2 more lines"));
}

TEST(FindingWords, TheLimitIsToldInStepsAndInSecondsButNeverInNone) {
  const auto told = [](std::vector<std::pair<std::string, uint64_t>> evidence) {
    return finding_details(leak(std::move(evidence))).at(0);
  };
  EXPECT_EQ(told({{"limit_bytes", 8192}, {"steps_until_limit", 90}, {"seconds_until_limit", 125}}),
            "The limit of 8.00 KiB is reached in 90 more steps, about 2 min 05 s");
  EXPECT_EQ(told({{"limit_bytes", 8192}, {"steps_until_limit", 1}, {"seconds_until_limit", 0}}),
            "The limit of 8.00 KiB is reached in 1 more step, in less than a second");
  EXPECT_EQ(told({{"limit_bytes", 8192}, {"steps_until_limit", 90}}),
            "The limit of 8.00 KiB is reached in 90 more steps");
  const auto steps = [&](uint64_t count) {
    return told({{"limit_bytes", 8192}, {"steps_until_limit", count}});
  };
  EXPECT_THAT(steps(999), testing::EndsWith(" in 999 more steps"));
  EXPECT_THAT(steps(1049), testing::EndsWith(" in about 1,000 more steps"));
  EXPECT_THAT(steps(1050), testing::EndsWith(" in about 1,100 more steps"));
  EXPECT_THAT(steps(9999), testing::EndsWith(" in about 10,000 more steps"));
  EXPECT_THAT(steps(1'411'669), testing::EndsWith(" in about 1,400,000 more steps"));
  const uint64_t days = 30 * 24 * 3600;
  EXPECT_EQ(told({{"limit_bytes", 8192}, {"steps_until_limit", 9}, {"seconds_until_limit", days}}),
            "The limit of 8.00 KiB is reached in 9 more steps, about 720 h 00 min");
  EXPECT_EQ(told({{"limit_bytes", 8192}, {"steps_until_limit", 9}, {"seconds_until_limit", days + 1}}),
            "The limit of 8.00 KiB is more than 30 days away");
}

}  // namespace
}  // namespace gpumemprof

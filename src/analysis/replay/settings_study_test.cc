#include "analysis/replay/settings_study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/replay/settings_text.h"
#include "analysis/replay/snapshot_analysis.h"
#include "analysis/replay/snapshot_for_tests.h"
#include "base/size.h"

namespace gpumemprof {
namespace {

using testing::HasSubstr;
using P = PaperSnapshot;

TEST(SettingsText, AChangeTakesThePlaceOfItsNameAndKeepsTheRest) {
  EXPECT_EQ(merge_settings("max_split_size_mb:512, roundup_power2_divisions:[256:1,>:2]",
                           "max_split_size_mb:64,expandable_segments:True"),
            "max_split_size_mb:64,roundup_power2_divisions:[256:1,>:2],expandable_segments:True");
  EXPECT_EQ(merge_settings("", "a:1"), "a:1");
  EXPECT_EQ(merge_settings("a:1", ""), "a:1");
}

TEST(SettingsText, FieldsStandInWhereTheFileHasNoText) {
  RecordedSettings settings;
  EXPECT_EQ(recorded_text(settings), "");
  settings.max_split_size_bytes = 128 * int64_t(kMiB);
  settings.expandable_segments = true;
  settings.garbage_collection_threshold = 0.8;
  EXPECT_EQ(recorded_text(settings),
            "max_split_size_mb:128,garbage_collection_threshold:0.8,expandable_segments:True");
}

TEST(SettingsText, CandidatesAreValidNewAndBounded) {
  P paper = out_of_memory_on_paper();
  const Release release = *find_release("2.13");
  const auto candidates =
      candidate_settings(paper.snapshot.traces[0], {}, release, {.has_capacity = true, .most = 5});
  ASSERT_EQ(candidates.size(), 5u);
  EXPECT_EQ(candidates[0], "expandable_segments:True");
  for (const std::string& text : candidates) EXPECT_TRUE(parse_settings(text, release)) << text;
  RecordedSettings expandable{.known = true, .conf = "expandable_segments:True"};
  EXPECT_THAT(candidate_settings(paper.snapshot.traces[0], expandable, release, {}),
              testing::Not(testing::Contains("expandable_segments:True")));
}

TEST(SettingsText, WhatWasSetIsTakenAwayInTurnAndAltogether) {
  P paper = out_of_memory_on_paper();
  const Release release = *find_release("2.6");
  const RecordedSettings recorded{
      .known = true, .conf = "max_split_size_mb:64,roundup_power2_divisions:2,backend:native"};
  const auto candidates = candidate_settings(paper.snapshot.traces[0], recorded, release, {});
  EXPECT_THAT(candidates, testing::IsSupersetOf({"", "expandable_segments:True",
                                                 "roundup_power2_divisions:2,backend:native",
                                                 "max_split_size_mb:64,backend:native"}));
  EXPECT_THAT(candidates, testing::Not(testing::Contains(
                              "max_split_size_mb:64,roundup_power2_divisions:2")));
  EXPECT_THAT(candidate_settings(paper.snapshot.traces[0], {}, release, {}),
              testing::Not(testing::Contains("")));
}

TEST(SettingsText, TheVariableIsTheOneThatTheReleaseReads) {
  EXPECT_STREQ(settings_variable(*find_release("2.9")), "PYTORCH_CUDA_ALLOC_CONF");
  EXPECT_STREQ(settings_variable(*find_release("2.10")), "PYTORCH_ALLOC_CONF");
}

TEST(SettingsStudy, TheRecordedSettingsAreTheFirstRow) {
  P paper = out_of_memory_on_paper();
  const SettingsStudy study = *study_settings(
      paper.snapshot, 0, {.settings = {"expandable_segments:True"}, .capacity_bytes = 60 * kMiB});
  ASSERT_EQ(study.rows.size(), 2u);
  EXPECT_EQ(study.replay.matched, 4u);
  EXPECT_EQ(study.recorded_peak_reserved_bytes, 36 * kMiB);
  EXPECT_EQ(study.room->bytes, 60 * kMiB);
  EXPECT_EQ(study.rows[0].result.num_ooms, 1u);
  EXPECT_EQ(study.rows[0].result.first_oom_event_index, 10u);
  EXPECT_EQ(study.rows[1].result.num_ooms, 0u);
  EXPECT_EQ(study.rows[1].result.peak_reserved_bytes, 60 * kMiB);
  ASSERT_NE(best_row(study), nullptr);
  EXPECT_EQ(best_row(study), &study.rows[1]);
}

TEST(SettingsStudy, ARefusalIsTriedWithTheSettingsOfASweep) {
  P paper;
  uint64_t address = P::kFirst;
  for (uint64_t size : {40 * kMiB, 80 * kMiB, 160 * kMiB}) {  // three split limits
    paper.add(Action::kSegmentAlloc, address, size, 1);
    paper.add(Action::kAlloc, address, size, 1);
    paper.segment(address, {{size, 1}});
    address += size;
  }
  paper.add(Action::kOom, 10 * kMiB, 1024 * kMiB, 2);
  const SettingsStudy study = *study_settings(paper.snapshot, 0, {.sweep = true});
  const Analysis analysis = *analyze_snapshot(paper.snapshot, {});
  const OomExplanation& oom = analysis.devices[0].snapshot->ooms.at(0);
  // Expandable segments, the limits, three divisions, expandable with divisions, and the limits
  // with rounding; garbage collection needs a capacity.
  EXPECT_EQ(oom.trials.size(), 1u + 3 + 3 + 1 + 3);
  std::vector<std::string> swept, tried;
  for (size_t i = 1; i < study.rows.size(); ++i) swept.push_back(study.rows[i].settings);
  for (const OomTrial& trial : oom.trials) tried.push_back(trial.settings);
  EXPECT_THAT(tried, testing::UnorderedElementsAreArray(swept));
}

TEST(SettingsStudy, WhatTheProgramNeedsIsLessThanWhatTheCacheTakes) {
  P paper;  // 20 MiB are cached when 40 are asked for: of 40 MiB in all they are given back
  paper.add(Action::kSegmentAlloc, P::kFirst, 20 * kMiB, 1);
  paper.add(Action::kAlloc, P::kFirst, 20 * kMiB, 1);
  paper.free(P::kFirst, 20 * kMiB, 1);
  paper.add(Action::kSegmentAlloc, P::kSecond, 40 * kMiB, 2);
  paper.add(Action::kAlloc, P::kSecond, 40 * kMiB, 2);
  paper.segment(P::kFirst, {{20 * kMiB, 0}});
  paper.segment(P::kSecond, {{40 * kMiB, 2}});
  const SettingsStudy study = *study_settings(paper.snapshot, 0, {});
  EXPECT_EQ(study.rows[0].result.peak_reserved_bytes, 60 * kMiB);
  EXPECT_EQ(study.rows[0].least_memory_bytes, 40 * kMiB);
  EXPECT_EQ(study.rows[0].retries_there, 1u);
  const SettingsStudy limited = *study_settings(paper.snapshot, 0, {.capacity_bytes = 50 * kMiB});
  EXPECT_FALSE(limited.rows[0].least_memory_bytes);
}

TEST(SettingsStudy, AnotherReleaseAloneIsARowOfItsOwn) {
  P paper = out_of_memory_on_paper();
  const SettingsStudy study = *study_settings(
      paper.snapshot, 0, {.never_runs_out = true, .release = *find_release("2.13")});
  ASSERT_EQ(study.rows.size(), 2u);
  EXPECT_EQ(release_name(study.rows[1].release), "2.13");
  EXPECT_EQ(study.rows[1].result.peak_reserved_bytes, 68 * kMiB);
}

TEST(SettingsStudy, RefusesWhatItCannotPredict) {
  P empty;
  const auto without = study_settings(empty.snapshot, 0, {});
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, HasSubstr("no allocation was recorded"));
  P paper = out_of_memory_on_paper();
  const auto wrong = study_settings(paper.snapshot, 0, {.settings = {"no_such_key:1"}});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kUsage);
}

TEST(SettingsStudy, ReplaysBelowTheLeastFidelityAreRefusedUnlessForced) {
  P paper;  // first-fit would have taken the lowest address
  paper.add(Action::kSegmentAlloc, P::kFirst, 20 * kMiB, 1);
  paper.add(Action::kAlloc, P::kFirst + 8 * kMiB, 4 * kMiB, 1);
  paper.segment(P::kFirst, {{8 * kMiB, 0}, {4 * kMiB, 1}, {8 * kMiB, 0}});
  const auto refused = study_settings(paper.snapshot, 0, {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("only 0.0 %"));
  EXPECT_TRUE(study_settings(paper.snapshot, 0, {.force = true}));
}

}  // namespace
}  // namespace gpumemprof

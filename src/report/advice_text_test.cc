#include "report/advice_text.h"

#include <gtest/gtest.h>

#include "analysis/advice/practices.h"
#include "report/describe/sections.h"

namespace gpumemprof {
namespace {

Advice measured(uint64_t bytes, uint64_t after) {
  Advice one{.kind = "prefetch", .title = "8 batches ahead", .fix = "Fewer", .bytes = bytes};
  one.basis = SavingBasis::kMeasured;
  one.peak_bytes = 10 << 20;
  one.changed_peak_bytes = after;
  return one;
}

TEST(AdviceText, WhatSavesNothingIsShownAsMeasuredAndNotRecommended) {
  AdviceReport report;
  report.applies = true;
  report.advice = {measured(4 << 20, 6 << 20), measured(0, 12 << 20)};
  EXPECT_EQ(
      advice_text(report),
      "1 suggestion\n  prefetch          4.00 MiB  8 batches ahead\n                              "
      "Fewer.\n                              4.00 MiB of the 10.0 MiB peak, measured in a second "
      "run with the change.\n  prefetch               0 B  8 batches ahead\n                       "
      "       Saves nothing: the peak was 10.0 MiB, and 12.0 MiB in a run with the change.\n");
}

TEST(AdviceText, WhatSavesTimeHasNoBytes) {
  AdviceReport report;
  report.applies = true;
  report.advice = {{.kind = "allocator", .title = "9 times", .fix = "do not"}};
  report.advice[0].basis = SavingBasis::kTime;
  EXPECT_EQ(advice_text(report),
            "1 suggestion\n  allocator             time  9 times\n                              Do "
            "not.\n                              Saves time, not memory; not simulated.\n");
}

TEST(AdviceText, ChoicesThatHaveAPriceFollowWhatIsWasted) {
  AdviceReport report;
  report.applies = true;
  Advice choice{.kind = "optimizer_state", .title = "state", .fix = "Less", .bytes = 9 << 20};
  choice.cost = "time";
  report.advice = {choice};
  EXPECT_EQ(advice_text(report).find(kChoicesFollow), std::string::npos) << "nothing comes before";
  report.advice = {choice, measured(4 << 20, 6 << 20)};
  order_advice(&report.advice);
  EXPECT_EQ(report.advice.front().kind, "prefetch");
  EXPECT_NE(advice_text(report).find("\nChoices that have a price; they save at most these bytes:\n"
                                     "  optimizer_state   9.00 MiB  state\n"),
            std::string::npos);
}

TEST(AdviceText, WithoutASuggestionWhatElseLowersThePeakIsSaid) {
  AdviceReport report;
  report.applies = true;
  EXPECT_EQ(advice_text(report, "Next: a smaller batch."),
            "No suggestion has a computed saving.\nNext: a smaller batch.\n");
  report.unknown = {{"checkpointing", "a snapshot has no modules"}};
  EXPECT_EQ(advice_text(report, "Next: a smaller batch."),
            "No suggestion has a computed saving.\nNext: a smaller batch.\n"
            "Not checked: checkpointing (a snapshot has no modules)\n");
}

TEST(AdviceText, WhatNoRecordingTellsIsNoNewsOfThisOne) {
  AdviceReport report;
  report.applies = true;
  report.unknown = {{"mixed_precision", "dtypes are not recorded"},
                    {"quantization", "dtypes are not recorded"},
                    {"pruning", "a recording does not say which weights are needed"},
                    {"holders", "file.gmp: damaged"},
                    {"distributed", "a recording does not say how many devices there were"}};
  EXPECT_EQ(advice_text(report),
            "No suggestions.\n"
            "Not checked: holders (file.gmp: damaged)\n");
  report.unknown = {{"mixed_precision", "the recording has no names of ops"}};
  EXPECT_EQ(advice_text(report),
            "No suggestions.\nNot checked: mixed_precision (the recording has no names of ops)\n");
}

TEST(AdviceText, WhatComesNextIsSaidWhereNoAdviceCanBeGiven) {
  AdviceReport report;
  report.unknown = {{"all", "the types of the memory are unknown"}};
  EXPECT_EQ(advice_text(report, "Next: stop the leak."),
            "No suggestions: the types of the memory are unknown.\nNext: stop the leak.\n");
  report = {.applies = true};
  EXPECT_EQ(advice_markdown("r.gmp", "text\n", &report, "Next: stop the leak."),
            "# Memory of r.gmp\n\n## What to change\n\nNo suggestions.\n\nNext: stop the leak.\n\n"
            "## The analysis\n\n````text\ntext\n````\n");
}

TEST(AdviceText, WhatComesNextIsSaidBelowAdviceThatSavesTimeAlone) {
  AdviceReport report{.applies = true};
  report.advice.push_back({.kind = "allocator", .title = "t", .fix = "f", .basis = SavingBasis::kTime});
  EXPECT_TRUE(advice_text(report, "Next: whatif.").ends_with("\nNext: whatif.\n"));
  report.advice.push_back({.kind = "allocator", .title = "t", .fix = "f", .bytes = 7});
  EXPECT_FALSE(advice_text(report, "Next: whatif.").contains("Next"));
}

TEST(AdviceText, HowAProgramFailedIsSaidFirst) {
  AdviceReport report;
  report.applies = true;
  report.failure = "the program was ended by signal 9";
  EXPECT_EQ(
      advice_text(report),
      "Note: the program was ended by signal 9; the suggestions cover what was recorded until then "
      "and were not measured.\n"
      "No suggestions.\n");
}

}  // namespace
}  // namespace gpumemprof

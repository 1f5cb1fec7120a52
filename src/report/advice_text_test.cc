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
      "1 suggestion\n  prefetch          4.00 MiB  8 batches ahead\n                             "
      "Fewer.\n                             4.00 MiB of the 10.0 MiB peak, measured in a second "
      "run with the change.\n  prefetch               0 B  8 batches ahead\n                       "
      "      Saves nothing: the peak was 10.0 MiB, and 12.0 MiB in a run with the change.\n");
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
            "None of the changes to the code that advise checks would lower the peak.\nNext: a smaller batch.\n");
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

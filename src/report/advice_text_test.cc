#include "report/advice_text.h"

#include <gtest/gtest.h>

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

#include "estimate/trace_prediction.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/size.h"
#include "estimate/configuration_answer.h"
#include "estimate/merge.h"
#include "estimate/trace_for_tests.h"

namespace gpumemprof {
namespace {

const std::string kStep =
    "s fc.weight\ns fc\n"
    "p setup\na 0 4000 0 p 1\n"
    "p input\na 1 300 0 - 0\n"
    "p forward\na 2 500 0 - 2\na 3 70 0 - 2\nf 3\n"
    "p backward\na 4 4000 0 g 1\na 5 600 0 - 2\nf 5\nf 2\n"
    "p optimizer\na 6 8000 0 o 1\n";

TEST(TracePrediction, SharesAreWhatLivesAtThePeakAndAddUpToIt) {
  const Prediction prediction = predict_from_trace(trace_of(kStep), {});
  ASSERT_TRUE(prediction.live && prediction.device);
  EXPECT_EQ(prediction.live->expected, 4000u + 300 + 4000 + 8000);
  EXPECT_EQ(prediction.live->low, prediction.live->high);
  uint64_t sum = 0;
  for (const PredictedShare& share : prediction.at_peak) sum += share.bytes;
  EXPECT_EQ(sum, prediction.live->expected);
  ASSERT_EQ(prediction.at_peak.size(), 4u);
  EXPECT_EQ(prediction.at_peak[0].name, "fc");
  EXPECT_EQ(prediction.at_peak[0].category, Category::kOptimizerState);
  EXPECT_EQ(prediction.at_peak[3].category, Category::kInput);
  EXPECT_EQ(prediction.at_peak[3].name, "outside of modules");
}

TEST(TracePrediction, WhatOutlivesTheForwardPassIsAnActivation) {
  const StepTrace trace = trace_of(kStep);
  const auto share_of = [&](uint64_t event, Category category) {
    uint64_t bytes = 0;
    for (const PredictedShare& share : shares_at(trace, event))
      bytes += share.category == category ? share.bytes : 0;
    return bytes;
  };
  EXPECT_EQ(share_of(6, Category::kActivation), 500u);  // right after "a 3"
  EXPECT_EQ(share_of(6, Category::kTemporary), 70u);
  EXPECT_EQ(share_of(10, Category::kTemporary), 600u);  // right after "a 5"
  EXPECT_EQ(share_of(10, Category::kGradient), 4000u);
}

TEST(TracePrediction, TheDeviceIsTheReservedBytesAndTheConstant) {
  TraceScenario scenario;
  scenario.device_constant_bytes = 1'000'000'000;
  scenario.device_constant_source = "a test";
  const Prediction prediction = predict_from_trace(trace_of(kStep), scenario);
  EXPECT_EQ(prediction.reserved->expected, 2 * kMiB);
  EXPECT_EQ(prediction.device->expected, 2 * kMiB + 1'000'000'000);
  EXPECT_LE(prediction.device->low, prediction.device->expected);
  EXPECT_GE(prediction.device->high, prediction.device->expected);
  EXPECT_EQ(prediction.assumptions[0].source, "a test");
}

TEST(TracePrediction, WithoutACalibrationTheIntervalIsWider) {
  TraceScenario measured;
  measured.device_constant_bytes = 1720 * kMiB;  // as fitted, but measured on this GPU
  measured.device_constant_source = "a test";
  const Prediction with = predict_from_trace(trace_of(kStep), measured),
                   without = predict_from_trace(trace_of(kStep), {});
  EXPECT_EQ(without.device->expected, 1722 * kMiB);
  EXPECT_EQ(without.device->expected, with.device->expected);
  EXPECT_EQ(without.device->high, with.device->high);
  EXPECT_EQ(with.device->low, static_cast<uint64_t>(0.964 * 1722 * kMiB));
  // 287,047,680 bytes were in use with one tensor in a segment of 20 MiB.
  EXPECT_EQ(without.device->low, static_cast<uint64_t>(0.964 * 2 * kMiB) + 287'047'680 - 20 * kMiB);
  EXPECT_EQ(without.allocated->low, with.allocated->low) << "the constant is no allocator's";
}

TEST(TracePrediction, WhatRunsOutOfMemoryHasNoPeaksAndSaysWhere) {
  TraceScenario scenario;
  scenario.config.capacity_bytes = 30 * kMiB;
  const std::string lines = "p setup\na 0 20971520 0 p 0\np forward\na 1 20971520 0 - 0\n";
  const Prediction prediction = predict_from_trace(trace_of(lines), scenario);
  EXPECT_FALSE(prediction.live || prediction.allocated || prediction.reserved || prediction.device);
  ASSERT_EQ(prediction.unknown.size(), 1u);
  EXPECT_EQ(prediction.unknown[0],
            "runs out of memory at 30.0 MiB for the allocator (phase forward)");
  scenario.config.capacity_bytes = 40 * kMiB;  // the same loop has just enough of this
  EXPECT_EQ(predict_from_trace(trace_of(lines), scenario).reserved->expected, 40 * kMiB);
}

TEST(TracePrediction, AllocatedBytesAreAsFarOffAsTheDevice) {
  TraceScenario scenario;
  scenario.device_constant_bytes = 1'000'000'000;
  const Prediction prediction = predict_from_trace(trace_of(kStep), scenario);
  ASSERT_TRUE(prediction.allocated && prediction.device);
  EXPECT_EQ(prediction.allocated->high - prediction.allocated->expected,
            prediction.device->high - prediction.device->expected);
  // 2 MiB of 1 GB: the device may be 3 % lower, live tensors are there all the same.
  EXPECT_EQ(prediction.allocated->low, prediction.live->expected);
}

TEST(TracePrediction, TheLargestBatchByHalvingIsThatOfALinearSearch) {
  const auto at = [](uint64_t batch) {
    return "a 0 50000000 0 p 0\na 1 " + std::to_string(batch * 3'000'000) + " 0 - 0\na 2 " +
           std::to_string(batch * 1'500'000) + " 0 - 0\nf 2\nf 1\n";
  };
  const auto merged = ScaledTrace::merge(trace_of(at(2), 2), trace_of(at(4), 4));
  ASSERT_TRUE(merged);
  TraceScenario scenario;
  scenario.device_constant_bytes = 0;
  for (const uint64_t capacity : {40 * kMiB, 64 * kMiB, 200 * kMiB, 333 * kMiB}) {
    const auto fits = [&](uint64_t batch) {
      return fits_into(merged->at(batch), scenario, capacity, false);
    };
    uint64_t linear = 0;
    while (fits(linear + 1)) ++linear;
    EXPECT_EQ(largest_batch_that(fits, 1000), linear) << capacity;
  }
}

TEST(TracePrediction, WhatNoDeviceHasIsUnknown) {
  std::string lines;
  for (int i = 0; i < 1023; ++i) lines += "a " + std::to_string(i) + " 1125899906842000 0 - 0\n";
  const auto merged =
      ScaledTrace::merge(trace_of("a 0 4 0 - 0\n", 2), trace_of("a 0 8 0 - 0\n", 4));
  EXPECT_TRUE(fits_into(merged->at(2), {}, 10ull << 30, true));
  const StepTrace huge = trace_of(lines);
  EXPECT_FALSE(fits_into(huge, {}, 10ull << 30, true));
}

}  // namespace
}  // namespace gpumemprof

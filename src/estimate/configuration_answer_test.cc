#include "estimate/configuration_answer.h"

#include <gtest/gtest.h>

#include "estimate/closed_form_for_tests.h"
#include "estimate/prices.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kGiB = 1 << 30;

/// One batch after the other, until one does not fit.
uint64_t by_linear_search(const ConfigurationCase& read, TrainingSetup setup, uint64_t capacity) {
  for (setup.batch = 1;; ++setup.batch) {
    auto prediction = predict_closed_form(read.shape, setup);
    EXPECT_TRUE(prediction);
    if (!prediction || bytes_that_must_fit(*prediction)->high > capacity) return setup.batch - 1;
  }
}

TEST(ConfigurationAnswer, TheLargestBatchIsThatOfALinearSearch) {
  struct Question {
    const char* config;
    std::vector<SetupOption> options;
  };
  const Question questions[] = {
      {kGpt2, {}},
      {kGpt2, {{"precision", "amp-bf16"}, {"optimizer", "sgd"}}},
      {kGpt2, {{"checkpointing", "full"}}},
      {kLlama3_8b, {{"sequence", "1024"}, {"dp", "8"}, {"zero", "3"}}},
      {kLlama3_8b, {{"inference", "true"}, {"context", "4096"}}},
      {kMixtral8x7b, {{"inference", "true"}, {"ep", "8"}, {"sequence", "512"}}},
      {kPaperGpt, {{"tp", "2"}, {"pp", "3"}}},
  };
  for (const Question& question : questions) {
    const ConfigurationCase read = read_case(question.config);
    const TrainingSetup setup = setup_of(read, question.options);
    for (uint64_t capacity : {1 * kGiB, 11 * kGiB, 24 * kGiB, 79 * kGiB}) {
      auto found = largest_batch_that_fits(read.shape, setup, capacity);
      ASSERT_TRUE(found);
      EXPECT_EQ(*found, by_linear_search(read, setup, capacity))
          << setup_words(setup) << ", " << capacity;
    }
  }
}

TEST(ConfigurationAnswer, AutoNeedsACapacityAndSaysWhatItFound) {
  ConfigurationRequest request;
  request.subject = "config.json";
  request.options = {{"batch", "auto"}};
  EXPECT_EQ(answer_configuration(kGpt2, request).error().message,
            "give a capacity to find the largest batch that fits");
  request.capacity_bytes = 24 * kGiB;
  auto answer = answer_configuration(kGpt2, request);
  ASSERT_TRUE(answer);
  ASSERT_TRUE(answer->largest_batch);
  EXPECT_EQ(answer->prediction.batch, answer->largest_batch->batch);
  EXPECT_LE(answer->prediction.device->high, 24 * kGiB);
  EXPECT_EQ(answer->subject, "config.json (gpt2)");
  request.capacity_bytes = 1 << 20;
  answer = answer_configuration(kGpt2, request);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->largest_batch->batch, 0u);
  EXPECT_EQ(answer->prediction.batch, 1u);
}

TEST(ConfigurationAnswer, TheTableHasEverySettingOnce) {
  ConfigurationRequest request;
  request.table = true;
  auto answer = answer_configuration(kGpt2, request);
  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->table.size(), 4u * 3 * 2);
  EXPECT_EQ(answer->table.front().settings, "adamw, fp32, checkpointing none");
  // The row that is what was asked for is what was answered.
  for (const PredictionRow& row : answer->table) {
    if (row.settings == "adamw, bf16, checkpointing none") {
      EXPECT_EQ(row.prediction.allocated->expected, answer->prediction.allocated->expected);
    }
  }
  request.options = {{"inference", "true"}};
  EXPECT_EQ(answer_configuration(kGpt2, request).error().message,
            "the table covers training settings, not inference");
}

std::string price_error(std::string_view text) {
  auto prices = parse_prices(text);
  return prices ? "" : prices.error().message;
}

TEST(Prices, JsonAndCsvSayTheSame) {
  const auto json =
      parse_prices(R"([{"board": "nvidia h100 80gb", "price_per_hour": 2.5, "currency": "EUR"},
                                     {"board": "mine", "memory": "20GiB", "price_per_hour": 1, "currency": "EUR"}])");
  const auto csv = parse_prices(
      "board,memory,price_per_hour,currency\r\nnvidia h100 80gb,,2.5,EUR\nmine,20GiB,1,EUR\n");
  ASSERT_TRUE(json && csv);
  for (const auto* prices : {&*json, &*csv}) {
    ASSERT_EQ(prices->size(), 2u);
    EXPECT_EQ((*prices)[0].price_per_hour, 2.5);
    EXPECT_GT((*prices)[0].usable_bytes, 79 * kGiB);
    EXPECT_EQ((*prices)[1].usable_bytes, 20 * kGiB);
  }
}

TEST(Prices, AKnownBoardIsNamedByAsManyWordsAsTellItFromOthers) {
  const auto prices = parse_prices(
      "board,memory,price_per_hour,currency\nT4,,1,EUR\nA100 40gb,,1,EUR\nRTX 4090,,1,EUR\n");
  ASSERT_TRUE(prices) << prices.error().message;
  EXPECT_EQ((*prices)[0].usable_bytes / kGiB, 14u);
  EXPECT_EQ((*prices)[1].usable_bytes / kGiB, 39u);
  EXPECT_EQ((*prices)[2].usable_bytes / kGiB, 23u);
  EXPECT_EQ(price_error("board,price_per_hour\nA100,1\n"),
            "line 2: \"A100\" may be one of several: NVIDIA A100 40GB, NVIDIA A100 80GB");
}

TEST(Prices, TheCheapestThatIsSureToFit) {
  Prediction p;
  p.device = PredictedBytes{9 * kGiB, 8 * kGiB, 10 * kGiB};
  const std::vector<BoardPrice> prices = {{"small", 9 * kGiB, 0.1, "EUR"},
                                          {"large", 80 * kGiB, 2, "EUR"},
                                          {"middle", 12 * kGiB, 1, "EUR"},
                                          {"wide", 16 * kGiB, 1, "EUR"}};
  auto best = cheapest_that_fits(p, prices);
  ASSERT_TRUE(best && *best);
  EXPECT_EQ((*best)->board, "wide") << "of equal prices the larger";
  p.device = PredictedBytes{90 * kGiB, 80 * kGiB, 100 * kGiB};
  best = cheapest_that_fits(p, prices);
  ASSERT_TRUE(best);
  EXPECT_FALSE(*best);
  EXPECT_FALSE(cheapest_that_fits(p, {{"a", kGiB, 1, "EUR"}, {"b", kGiB, 1, "USD"}}));
}

TEST(Prices, WhatIsNoPriceListIsNamed) {
  EXPECT_EQ(price_error(""), "is empty");
  EXPECT_EQ(price_error("[1"), "is not valid JSON");
  EXPECT_EQ(parse_prices("[1, x]").error().offset, 4u);
  EXPECT_EQ(price_error("[]"), "has no boards");
  EXPECT_EQ(price_error("{}"), "is not a list of boards and prices");
  EXPECT_EQ(price_error("[{}]"), "entry 1 has no board name");
  EXPECT_EQ(price_error(R"([{"board": "x"}])"), "entry 1: price_per_hour is not a price");
  EXPECT_EQ(price_error("a,b\n1,2\n"), "has no header with board and price_per_hour");
  EXPECT_EQ(price_error("board,price_per_hour\nx\n"), "line 2 has 1 cells, the header 2");
  EXPECT_EQ(price_error("board,price_per_hour\nx,-1\n"), "line 2: price_per_hour is not a price");
  EXPECT_EQ(price_error("board,price_per_hour\nx,1\n"),
            "line 2: the memory of \"x\" is unknown: give it as memory, such as 79.1GiB");
  EXPECT_EQ(price_error("board,price_per_hour\n\"x\",1\n"),
            "line 2: quoted cells are not supported");
}

}  // namespace
}  // namespace gpumemprof

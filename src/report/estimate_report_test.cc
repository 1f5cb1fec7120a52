#include "report/estimate_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/size.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kGiB = 1 << 30;

EstimateAnswer answer() {
  EstimateAnswer out;
  out.subject = "config.json (llama)";
  out.setup = "training, adamw, bf16";
  Prediction& p = out.prediction;
  p.batch = 4;
  p.allocated = PredictedBytes{8 * kGiB, 7 * kGiB, 9 * kGiB};
  p.reserved = PredictedBytes{9 * kGiB, 8 * kGiB, 10 * kGiB};
  p.device = PredictedBytes{10 * kGiB, 9 * kGiB, 11 * kGiB};
  p.at_peak = {{"layers", Category::kActivation, 4 * kGiB},
               {"weights", Category::kParameter, 3 * kGiB},
               {"logits", Category::kActivation, 1 * kGiB}};
  p.assumptions = {{"attention: flash", "config.json"}, {"dropout 0", ""}};
  p.unknown = {"live: a closed form does not tell tensors from blocks."};
  return out;
}

/// A row whose one known peak is 2 MiB.
Prediction small_row(const EstimateAnswer& a) {
  Prediction p = a.prediction;
  p.allocated = PredictedBytes{2 * kMiB, 2 * kMiB, 2 * kMiB};
  p.reserved = p.device = std::nullopt;
  return p;
}

TEST(EstimateReport, TheWholeText) {
  EstimateAnswer a = answer();
  a.capacity_bytes = 10 * kGiB;
  a.boards = {{{"Board A", 7 * kGiB, "seen"}, FitVerdict::kDoesNotFit},
              {{"Board B", 15 * kGiB, "seen"}, FitVerdict::kFits}};
  a.prices_given = true;
  a.cheapest = BoardPrice{"Board B", 15 * kGiB, 1.5, "EUR"};
  a.table = {{"sgd, bf16", small_row(a)}};
  a.largest_batch = LargestBatch{4, 10 * kGiB, true};
  EXPECT_EQ(estimate_text(a), R"(config.json (llama): training, adamw, bf16
By arithmetic over the configuration; nothing was run, batch 4 per device.
The largest batch that fits 10.0 GiB, using the upper end: 4.

  peak        expected        low       high
  live         unknown                        sum of live tensors
  allocated   8.00 GiB   7.00 GiB   9.00 GiB  torch.cuda.max_memory_allocated()
  reserved    9.00 GiB   8.00 GiB   10.0 GiB  torch.cuda.max_memory_reserved()
  device      10.0 GiB   9.00 GiB   11.0 GiB  nvidia-smi's figure for the process

Memory at the peak, by type (8.00 GiB):
   5.00 GiB  62.5 %  activation
   3.00 GiB  37.5 %  parameter
By part:
   4.00 GiB  50.0 %  layers (activation)
   3.00 GiB  37.5 %  weights (parameter)
   1.00 GiB  12.5 %  logits (activation)

Other settings, expected peaks:
  allocated   reserved     device  settings
   2.00 MiB    unknown    unknown  sgd, bf16

With 10.0 GiB for the process: may fit.

Does it fit on an otherwise empty GPU:
  does not fit   7.00 GiB  Board A
  fits           15.0 GiB  Board B
Cheapest board of your price list that fits: Board B, 1.50 EUR an hour.

Assumed:
  - attention: flash (config.json)
  - dropout 0

Not known:
  - live: a closed form does not tell tensors from blocks.
)");
}

TEST(EstimateReport, WhatIsNotThereIsNotSaid) {
  EstimateAnswer a;
  a.subject = "train\x1b[31m.py";
  a.prediction.method = EstimateMethod::kTraceOfScript;
  a.prediction.live = PredictedBytes{3 * kMiB, 3 * kMiB, 3 * kMiB};
  EXPECT_EQ(
      estimate_text(a),
      "train\xef\xbf\xbd[31m.py\nBy two steps of the script, traced without a GPU.\n\n  peak       "
      " expected        low       high\n  live        3.00 MiB   3.00 MiB   3.00 MiB  sum of live "
      "tensors\n  allocated    unknown                        torch.cuda.max_memory_allocated()\n  "
      "reserved     unknown                        torch.cuda.max_memory_reserved()\n  device      "
      " unknown                        nvidia-smi's figure for the process\n");
}

TEST(EstimateReport, NoBatchFitsAndNoPrice) {
  EstimateAnswer a = answer();
  a.largest_batch = LargestBatch{0, 2 * kGiB, false};
  a.prices_given = true;
  const std::string text = estimate_text(a);
  EXPECT_NE(text.find("Batch 1 does not fit 2.00 GiB, using the expected figure; the figures are "
                      "for batch 1.\n"),
            std::string::npos);
  EXPECT_NE(text.find("No board of your price list is certain to be large enough.\n"),
            std::string::npos);
}

TEST(EstimateReport, BatchOneMayFitWhereItsIntervalSaysSo) {
  EstimateAnswer a = answer();  // 9 to 11 GiB of the device
  a.capacity_bytes = 10 * kGiB;
  a.largest_batch = LargestBatch{0, 10 * kGiB, true};
  const std::string text = estimate_text(a);
  EXPECT_NE(text.find("Batch 1 may fit 10.0 GiB; the figures are for batch 1.\n"),
            std::string::npos);
  EXPECT_NE(text.find("With 10.0 GiB for the process: may fit.\n"), std::string::npos);
  EXPECT_EQ(text.find("does not fit"), std::string::npos);
}

TEST(EstimateReport, TheWholeJson) {
  EstimateAnswer a = answer();
  a.capacity_bytes = 8 * kGiB;
  a.boards = {{{"Board A", 7 * kGiB, "seen"}, FitVerdict::kDoesNotFit}};
  a.table = {{"sgd, bf16", small_row(a)}};
  const std::string expected =
      R"j({"schema":"gpumemprof.estimate/1","subject":"config.json (llama)","setup":"training, adamw, bf16",)j"
      R"j("method":"closed_form","batch":4,"peaks":{"live":null,)j"
      R"j("allocated":{"expected_bytes":8589934592,"low_bytes":7516192768,"high_bytes":9663676416},)j"
      R"j("reserved":{"expected_bytes":9663676416,"low_bytes":8589934592,"high_bytes":10737418240},)j"
      R"j("device":{"expected_bytes":10737418240,"low_bytes":9663676416,"high_bytes":11811160064}},)j"
      R"j("by_category":{"parameter":3221225472,"activation":5368709120},)j"
      R"j("at_peak":[{"name":"layers","category":"activation","bytes":4294967296},)j"
      R"j({"name":"weights","category":"parameter","bytes":3221225472},)j"
      R"j({"name":"logits","category":"activation","bytes":1073741824}],)j"
      R"j("largest_batch":null,"capacity":{"usable_bytes":8589934592,"verdict":"does not fit"},)j"
      R"j("boards":[{"board":"Board A","usable_bytes":7516192768,"source":"seen",)j"
      R"j("verdict":"does not fit"}],"cheapest":null,)j"
      R"j("table":[{"settings":"sgd, bf16","live":null,)j"
      R"j("allocated":{"expected_bytes":2097152,"low_bytes":2097152,"high_bytes":2097152},)j"
      R"j("reserved":null,"device":null,)j"
      R"j("unknown":["live: a closed form does not tell tensors from blocks."]}],)j"
      R"j("assumptions":[{"what":"attention: flash","source":"config.json"},{"what":"dropout 0","source":""}],)j"
      R"j("unknown":["live: a closed form does not tell tensors from blocks."]})j"
      "\n";
  EXPECT_EQ(estimate_json(a, -1), expected);
}

TEST(EstimateReport, BytesThatAreNoTextDoNotBreakTheJson) {
  EstimateAnswer a = answer();
  a.subject = "\xff.json";
  const auto json = nlohmann::json::parse(estimate_json(a));
  EXPECT_EQ(json["subject"], "\xef\xbf\xbd.json");
}

TEST(Boards, TheyAreSortedByWhatCanBeUsedAndHaveASource) {
  uint64_t before = 0;
  for (const BoardFacts& board : known_boards()) {
    EXPECT_GT(board.usable_bytes, before) << board.name;
    before = board.usable_bytes;
    EXPECT_FALSE(board.source.empty());
    // The name says what it is sold as, in GB or GiB: no board has more than that many GiB, or less
    // than seven eighths of as many GB.
    const double sold = std::stod(board.name.substr(board.name.rfind(' ') + 1));
    EXPECT_LE(static_cast<double>(board.usable_bytes), sold * static_cast<double>(kGiB))
        << board.name;
    EXPECT_GT(static_cast<double>(board.usable_bytes), sold * 1e9 * 7 / 8) << board.name;
  }
}

TEST(Boards, TheDeviceIsComparedWhereItIsKnownElseWhatIsReserved) {
  Prediction p;
  EXPECT_EQ(fits(bytes_that_must_fit(p), kGiB), FitVerdict::kUnknown);
  p.reserved = PredictedBytes{10, 8, 12};
  EXPECT_EQ(fits(bytes_that_must_fit(p), 12), FitVerdict::kFits);
  EXPECT_EQ(fits(bytes_that_must_fit(p), 11), FitVerdict::kMayFit);
  EXPECT_EQ(fits(bytes_that_must_fit(p), 7), FitVerdict::kDoesNotFit);
  p.device = PredictedBytes{20, 18, 22};
  EXPECT_EQ(fits(bytes_that_must_fit(p), 12), FitVerdict::kDoesNotFit);
}

}  // namespace
}  // namespace gpumemprof

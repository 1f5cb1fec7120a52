#include "estimate/cost.h"

#include <gtest/gtest.h>

#include "analysis/driver/device_use.h"
#include "analysis/replay/snapshot_device.h"

namespace gpumemprof {
namespace {

constexpr uint64_t kOneGiB = 1ull << 30;

/// One CUDA device that reserved 20 GiB at most and allocated 15 GiB at most.
struct CostedRun {
  CostedRun() {
    tables.devices.push_back({.process = 0, .type = 1, .index = 0, .name = ""});
    tables.processes.emplace_back();
    tables.allocators.push_back({.process = 0, .type = 1, .index = 0, .device_bytes = 40 * kOneGiB});
    DeviceAnalysis& device = analysis.devices.emplace_back();
    device.figures.peak_bytes = 15 * kOneGiB;
    device.figures.has_totals = 1;
    device.figures.peak_reserved_bytes = 20 * kOneGiB;
  }
  Cost cost(const CostOptions& options, const AdviceReport* advice = nullptr) const {
    auto told = cost_of(analysis, tables, advice, options);
    EXPECT_TRUE(told) << told.error().message;
    return told ? *told : Cost{};
  }
  Tables tables;
  Analysis analysis;
};

std::string price_refused(std::string_view text) {
  const auto price = parse_price(text);
  return price ? "" : price.error().message;
}

TEST(Cost, PricesAsPeopleWriteThem) {
  for (const auto& [text, per_hour, currency] :
       {std::tuple{"2.49/h", 2.49, ""}, {"2.49", 2.49, ""}, {"2.49 EUR/h", 2.49, "EUR"},
        {"$2.49/h", 2.49, "$"}, {" 3 /h ", 3.0, ""}, {"EUR 0.5", 0.5, "EUR"},
        {"1€/h", 1.0, "€"}}) {
    const auto price = parse_price(text);
    ASSERT_TRUE(price) << text;
    EXPECT_EQ(price->per_hour, per_hour) << text;
    EXPECT_EQ(price->currency, currency) << text;
  }
  for (const char* text : {"", "x", "-1/h", "0", "0/h", "nan", "inf", "1e9", "1e3", "2.49/d", "2,49",
                           "$2 EUR/h", "2 3", "1/h/h", "99999999", "2 verylongcurrency", "0x10", "+3",
                           "1 E\x1bR"})
    EXPECT_NE(price_refused(text), "") << text;
  EXPECT_EQ(price_refused("x"),
            "\"x\" is not a price: give the price of the board per hour, such as 2.49/h or 2.49 EUR/h, "
            "above 0");
}

TEST(Cost, WasteIsAShareOfTheBoardsPrice) {
  const Cost cost = CostedRun().cost({.price = Price{2.0, "EUR"}, .boards = {}, .capacity_bytes = {}});
  EXPECT_EQ(cost.need_bytes, 20 * kOneGiB);
  EXPECT_EQ(cost.need_basis, NeedBasis::kReserved);
  EXPECT_EQ(cost.board_bytes, 40 * kOneGiB);
  EXPECT_EQ(cost.waste_bytes(), 5 * kOneGiB);
  EXPECT_EQ(cost.per_day(cost.waste_bytes()), 6.0);  // an eighth of 48 a day
}

TEST(Cost, TheCheapestBoardHoldsThePeakAndAdviceMayNeedASmallerOne) {
  AdviceReport advice;
  advice.advice = {{.kind = "small", .title = "", .fix = "", .bytes = kOneGiB, .evidence = {}},
                   {.kind = "large", .title = "", .fix = "", .bytes = 10 * kOneGiB, .evidence = {}},
                   {.kind = "other", .title = "", .fix = "", .bytes = 90 * kOneGiB, .evidence = {}, .device = 1}};
  const std::vector<BoardPrice> boards = {{"ten", 10 * kOneGiB, 0.5, ""},
                                          {"nineteen", 20 * kOneGiB - 1, 0.8, ""},
                                          {"twenty", 20 * kOneGiB, 1.0, ""},
                                          {"forty", 40 * kOneGiB, 2.0, ""}};
  const Cost cost = CostedRun().cost(
      {.price = Price{2.0, ""}, .boards = boards, .capacity_bytes = {}}, &advice);
  ASSERT_TRUE(cost.cheapest && cost.saving && cost.saving->cheapest);
  EXPECT_EQ(cost.cheapest->board, "twenty");
  EXPECT_EQ(cost.saving->kind, "large");
  EXPECT_EQ(cost.saving->need_bytes, 10 * kOneGiB);
  EXPECT_EQ(cost.saving->cheapest->board, "ten");
  EXPECT_EQ(cost.per_day(cost.saving->bytes), 12.0);
}

TEST(Cost, WhatTheDriverCountedGoesBeforeWhatTheAllocatorReserved) {
  CostedRun run;
  run.analysis.machine.emplace();
  MemoryUse& use = run.analysis.machine->devices.emplace_back();
  use.highest_own.emplace().own.bytes = 21 * kOneGiB;
  const CostOptions options{.price = Price{2.0, ""}, .boards = {}, .capacity_bytes = {}};
  EXPECT_EQ(run.cost(options).need_bytes, 21 * kOneGiB);
  use.highest_own->own.bytes = 3 * kOneGiB;  // samples missed the peak
  EXPECT_EQ(run.cost(options).need_bytes, 20 * kOneGiB);
  run.analysis.machine->devices.emplace_back();
  run.analysis.machine->devices[0].highest_own->own.bytes = 30 * kOneGiB;
  EXPECT_EQ(run.cost(options).need_bytes, 20 * kOneGiB) << "of two devices it is not known which";
}

/// 20 GiB were reserved, and 3 more were asked for; or no more than 22 would have been enough.
TEST(Cost, ABoardOnWhichTheRunWasRefusedMemoryDoesNotHoldIt) {
  CostedRun run;
  auto told = std::make_shared<SnapshotDevice>();
  told->ooms.push_back({.asked_bytes = 3 * kOneGiB});
  run.analysis.devices[0].snapshot = told;
  const CostOptions options{.boards = {{"small", 21 * kOneGiB, 1, ""}, {"large", 24 * kOneGiB, 2, ""}}};
  Cost cost = run.cost(options);
  EXPECT_EQ(cost.need_bytes, 23 * kOneGiB);
  EXPECT_EQ(cost.refused_bytes, 3 * kOneGiB);
  EXPECT_EQ(cost.cheapest->board, "large");
  told->ooms[0].more_bytes_needed = 2 * kOneGiB;
  EXPECT_EQ(run.cost(options).need_bytes, 22 * kOneGiB);
  told->ooms[0].went_on = true;
  EXPECT_EQ(run.cost(options).need_bytes, 20 * kOneGiB);
  EXPECT_EQ(run.cost(options).cheapest->board, "small");
}

TEST(Cost, WhatWasCachedBeforeTheFirstAllocationIsNotNeeded) {
  CostedRun run;
  auto told = std::make_shared<SnapshotDevice>();
  told->is_replayed = told->is_consistent = true;
  told->replay.peak_reserved.bytes = 20 * kOneGiB, told->cached_before_bytes = 6 * kOneGiB;
  told->most_reserved_after_cache_bytes = 16 * kOneGiB;
  run.analysis.devices[0].snapshot = told;
  EXPECT_EQ(run.cost({}).need_bytes, 16 * kOneGiB);
  told->cached_before_bytes = 0;
  EXPECT_EQ(run.cost({}).need_bytes, 20 * kOneGiB);
}

TEST(Cost, WhatIsNotKnownHasAReasonAndNoMoney) {
  CostedRun run;
  run.tables.allocators.clear();
  run.analysis.devices[0].figures.has_totals = 0;
  const Cost cost = run.cost({.price = Price{2.0, ""}, .boards = {}, .capacity_bytes = {}});
  EXPECT_EQ(cost.need_bytes, 15 * kOneGiB);
  EXPECT_EQ(cost.need_basis, NeedBasis::kAllocated);
  EXPECT_FALSE(cost.waste_bytes());
  EXPECT_FALSE(cost.per_day(kOneGiB));
  EXPECT_EQ(cost.unknown.size(), 3u) << "waste_bytes, board_bytes, saving";

  run.tables.devices[0].type = 0;
  EXPECT_FALSE(run.cost({.price = Price{2.0, ""}, .boards = {}, .capacity_bytes = {}}).need_bytes);
}

TEST(Cost, TwoCurrenciesAreNotCompared) {
  const CostedRun run;
  const CostOptions options{.price = Price{2.0, "EUR"},
                            .boards = {{"a", 40 * kOneGiB, 1, "USD"}},
                            .capacity_bytes = {}};
  EXPECT_FALSE(cost_of(run.analysis, run.tables, nullptr, options));
}

}  // namespace
}  // namespace gpumemprof

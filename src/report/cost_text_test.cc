#include "report/text_report.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(CostText, ShowsItsArithmetic) {
  constexpr uint64_t kGiB = 1ull << 30;
  Cost cost{.price = Price{2.49, "EUR"}, .currency = "EUR", .boards = 2};
  cost.board_bytes = 40 * kGiB;
  cost.need_bytes = cost.reserved_bytes = 20 * kGiB;
  cost.need_basis = NeedBasis::kReserved;
  cost.allocated_bytes = 15 * kGiB;
  cost.cheapest = BoardPrice{"L4\x1b", 22 * kGiB, 0.8, "EUR"};
  cost.saving = CostSaving{.kind = "checkpointing",
                           .basis = SavingBasis::kSimulated,
                           .bytes = 8 * kGiB,
                           .need_bytes = 12 * kGiB,
                           .cheapest = BoardPrice{"T4", 15 * kGiB, 0.35, "EUR"}};
  EXPECT_EQ(cost_text(cost), R"(
What it costs
  The peak needs 20.0 GiB: reserved by the allocator, without CUDA's context and libraries.
  The board: 2.49 an hour × 24 h = 59.76 EUR a day.
  The cheapest board of your list that holds it: L4� with 22.0 GiB, 0.80 an hour × 24 h = 19.20
  EUR a day, 40.56 EUR less.
  Waste: 20.0 GiB reserved at most − 15.0 GiB allocated at most = 5.00 GiB: 5.00 GiB ÷ 40.0 GiB
  × 59.76 = 7.47 EUR a day.
  Saving by advice: checkpointing, 8.00 GiB (simulated): 8.00 GiB ÷ 40.0 GiB × 59.76 = 11.95 EUR
  a day.
  Then 12.0 GiB are needed: T4 with 15.0 GiB, 0.35 an hour × 24 h = 8.40 EUR a day, 51.36 EUR
  less.
)");
}

TEST(CostText, SaysWhatIsUnknown) {
  Cost cost{.price = Price{1, ""}};
  cost.unknown.emplace_back("need_bytes", "the peak is in the host's memory, on no board");
  EXPECT_EQ(cost_text(cost), "\nWhat it costs\n  Unknown: the peak is in the host's memory, on no board.\n");
}

}  // namespace
}  // namespace gpumemprof

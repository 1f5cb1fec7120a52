#include "estimate/configuration_answer.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(LargestBatch, IsThatOfALinearSearch) {
  for (const uint64_t most : {1, 2, 7, 64, 100}) {
    for (uint64_t limit = 0; limit <= most + 2; ++limit) {
      const auto fits = [&](uint64_t batch) { return batch <= limit; };
      uint64_t linear = 0;
      while (linear < most && fits(linear + 1)) ++linear;
      EXPECT_EQ(largest_batch_that(fits, most), linear) << limit << " of " << most;
    }
  }
}

TEST(LargestBatch, AsksFewTimesAndNeverBeyondTheMost) {
  int asked = 0;
  const uint64_t found = largest_batch_that(
      [&](uint64_t batch) {
        ++asked;
        EXPECT_LE(batch, 1u << 20);
        return batch <= 777'777;
      },
      1u << 20);
  EXPECT_EQ(found, 777'777u);
  EXPECT_LE(asked, 42);
}

}  // namespace
}  // namespace gpumemprof

#include "analysis/categories/difference_series.h"

#include <gtest/gtest.h>

#include <random>

namespace gpumemprof {
namespace {

struct Life {
  size_t kind;
  uint64_t bytes, from, to;
};

TEST(DifferenceSeries, HoldsAtEverySampleWhatIsLiveThenHoweverOftenTheWidthDoubled) {
  std::mt19937_64 random(1);
  for (const uint64_t span : {10u, 63u, 64u, 1000u, 100'000u}) {
    DifferenceSeries<3> series(2, 16);
    std::vector<Life> lives;
    for (int i = 0; i < 300; ++i) {
      // In the order of their ends, as blocks are freed.
      const uint64_t to = span * static_cast<uint64_t>(i) / 300;
      lives.push_back({random() % 3, random() % 1000, to == 0 ? 0 : random() % to, to});
      series.add(lives.back().kind, lives.back().bytes, lives.back().from, to);
    }
    for (int i = 0; i < 20; ++i) {
      lives.push_back({random() % 3, random() % 1000, random() % span, UINT64_MAX});
      series.add_open(lives.back().kind, lives.back().bytes, lives.back().from);
    }
    const auto samples = series.samples(span);
    ASSERT_EQ(samples.size(), span / series.width() + 1);
    EXPECT_LE(samples.size(), 16u);
    for (size_t k = 0; k < samples.size(); ++k) {
      DifferenceSeries<3>::Sample expected{};
      for (const Life& life : lives) {
        const uint64_t at = k * series.width();
        if (life.from <= at && at < life.to) {
          expected[life.kind] += static_cast<int64_t>(life.bytes);
        }
      }
      EXPECT_EQ(samples[k], expected) << "sample " << k << " of " << span;
    }
  }
}

}  // namespace
}  // namespace gpumemprof

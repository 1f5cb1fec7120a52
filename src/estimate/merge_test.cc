#include "estimate/merge.h"

#include <gtest/gtest.h>

#include "estimate/trace_for_tests.h"

namespace gpumemprof {
namespace {

TEST(Merge, SizesAreAPlusBTimesTheBatch) {
  const auto merged = ScaledTrace::merge(
      trace_of("a 0 1000 0 - 0\na 1 64 0 - 0\nc f 0 200 400 36 9 1 1 3 8 0\nf 0\n", 2),
      trace_of("a 0 1000 0 - 0\na 1 128 0 - 0\nc f 0 400 800 36 9 1 1 3 8 0\nf 0\n", 4));
  ASSERT_TRUE(merged) << merged.error().message;
  const StepTrace at = merged->at(7);
  EXPECT_EQ(at.facts.batch, 7u);
  EXPECT_EQ(at.events[0].bytes, 1000u);
  EXPECT_EQ(at.events[1].bytes, 7u * 32);
  EXPECT_EQ(at.convolutions[0].input_bytes, 700u);
  EXPECT_EQ(at.convolutions[0].output_bytes, 1400u);
  EXPECT_EQ(at.convolutions[0].weight_bytes, 36u);
  EXPECT_EQ(merged->at(1).events[1].bytes, 32u);
}

TEST(Merge, FractionsAreRoundedAndNothingIsBelowZero) {
  const auto merged =
      ScaledTrace::merge(trace_of("a 0 10 0 - 0\na 1 10 0 - 0\na 2 1000 0 - 0\n", 2),
                         trace_of("a 0 11 0 - 0\na 1 4 0 - 0\na 2 1000 0 - 0\n", 4));
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->at(5).events[0].bytes, 12u);  // 11.5
  EXPECT_EQ(merged->at(8).events[0].bytes, 13u);
  EXPECT_EQ(merged->at(5).events[1].bytes, 1u);
  EXPECT_EQ(merged->at(6).events[1].bytes, 0u);  // -2
}

TEST(Merge, SizesThatFallWithTheBatchAreRefused) {
  const auto merged = ScaledTrace::merge(trace_of("a 0 10 0 - 0\na 1 800 0 - 0\n", 2),
                                         trace_of("a 0 20 0 - 0\na 1 400 0 - 0\n", 4));
  ASSERT_FALSE(merged);
  EXPECT_NE(merged.error().message.find("of 800 bytes at batch 2 has 400 at batch 4"),
            std::string::npos);
}

TEST(Merge, HugeBatchesStayInBounds) {
  const auto merged =
      ScaledTrace::merge(trace_of("a 0 2 0 - 0\n", 2), trace_of("a 0 1125899906842623 0 - 0\n", 4));
  ASSERT_TRUE(merged);
  EXPECT_EQ(merged->at(1u << 29).events[0].bytes, 1ull << 50);
}

TEST(Merge, AnotherOrderIsRefusedWithTheEvent) {
  const StepTrace low = trace_of("a 0 10 0 - 0\na 1 10 0 - 0\nf 0\nf 1\n", 2);
  const auto swapped =
      ScaledTrace::merge(low, trace_of("a 0 10 0 - 0\na 1 10 0 - 0\nf 1\nf 0\n", 4));
  ASSERT_FALSE(swapped);
  EXPECT_EQ(swapped.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(swapped.error().message.find("event 2 of 4"), std::string::npos)
      << swapped.error().message;
  EXPECT_FALSE(ScaledTrace::merge(low, trace_of("a 0 10 0 - 0\na 1 10 0 - 0\nf 0\n", 4)));
  EXPECT_FALSE(ScaledTrace::merge(low, low));
  EXPECT_FALSE(ScaledTrace::merge(trace_of("c f 0 1 1 1 9 1 1 3 8 0\n", 2),
                                  trace_of("c f 1 1 1 1 9 1 1 3 8 0\n", 4)));
}

}  // namespace
}  // namespace gpumemprof

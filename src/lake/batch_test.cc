// Columns as Arrow lays them out, against values added by hand.
#include "lake/batch.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(LakeColumn, HasABitForEachKnownValueLeastSignificantFirst) {
  LakeColumn column("n");
  for (int64_t i = 0; i < 10; ++i) i % 3 == 0 ? column.add_unknown() : column.add(i);
  EXPECT_EQ(column.rows, 10);
  EXPECT_EQ(column.unknown, 4);
  // Rows 1, 2, 4, 5, 7 of the first byte, row 8 of the second.
  EXPECT_EQ(column.known, (std::vector<uint8_t>{0b10110110, 0b00000001}));
  EXPECT_EQ(column.numbers, (std::vector<int64_t>{0, 1, 2, 0, 4, 5, 0, 7, 8, 0}));
  EXPECT_TRUE(column.is_known(8));
  EXPECT_FALSE(column.is_known(9));
}

TEST(LakeColumn, OfTextHasOneOffsetMoreThanRows) {
  LakeColumn column("t", true);
  column.add("ab"), column.add_unknown(), column.add(""), column.add("c");
  EXPECT_EQ(column.offsets, (std::vector<int32_t>{0, 2, 2, 2, 3}));
  EXPECT_EQ(column.texts, "abc");
  EXPECT_EQ(column.text(0), "ab");
  EXPECT_EQ(column.text(3), "c");
  EXPECT_FALSE(column.is_known(1));
  EXPECT_TRUE(column.is_known(2)) << "an empty text is known";
}

TEST(LakeColumn, ANumberThatNoColumnHoldsIsUnknown) {
  LakeColumn column("n");
  column.add_unsigned(INT64_MAX), column.add_unsigned(uint64_t{1} << 63);
  EXPECT_EQ(column.numbers[0], INT64_MAX);
  EXPECT_EQ(column.unknown, 1);
  EXPECT_FALSE(column.is_known(1));
}

TEST(LakeBatch, IsAsLongAsItsColumns) {
  LakeBatch batch;
  EXPECT_EQ(rows_of(batch), 0u);
  batch.emplace_back("n");
  batch[0].add(int64_t{1});
  EXPECT_EQ(rows_of(batch), 1u);
}

}  // namespace
}  // namespace gpumemprof

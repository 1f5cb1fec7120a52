#include "readers/pickle/memo.h"

#include <gtest/gtest.h>

namespace gpumemprof {
namespace {

TEST(Memo, EveryEntryIsFoundHoweverManyThereAre) {
  constexpr uint32_t kEntries = 20 * Memo::kChunk + 5;  // some chunks alone, then runs of them
  Memo memo;
  for (uint32_t i = 0; i < kEntries; ++i) memo.add(i * 2654435761u | 1);
  memo.set(Memo::kChunk, 7);
  memo.set(kEntries - 1, 9);
  ASSERT_EQ(memo.size(), kEntries);
  for (uint32_t i = 0; i < kEntries; ++i) {
    const uint32_t expected = i == Memo::kChunk ? 7 : i == kEntries - 1 ? 9 : i * 2654435761u | 1;
    ASSERT_EQ(memo.get(i), expected) << i;
  }
  EXPECT_EQ(memo.get(kEntries), 0u);
}

}  // namespace
}  // namespace gpumemprof

// Against std::set: the same keys in the same order after any changes.
#include "allocator/free_set.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace gpumemprof {
namespace {

void expect_same(const FreeSet& mine, const std::set<FreeKey>& theirs) {
  auto other = theirs.begin();
  for (const FreeKey& key : mine) {
    ASSERT_NE(other, theirs.end());
    ASSERT_EQ(key.address, other->address);
    ++other;
  }
  ASSERT_EQ(other, theirs.end());
  ASSERT_EQ(mine.empty(), theirs.empty());
}

/// `most` is how many keys there are at the turning point between growth and decline.
void change_at_random(size_t most, uint64_t sizes, unsigned seed) {
  std::mt19937_64 random(seed);
  FreeSet mine;
  std::set<FreeKey> theirs;
  std::vector<FreeKey> keys;
  for (int round = 0; round < 3; ++round) {
    for (bool grows : {true, false}) {
      for (size_t i = 0; i < most; ++i) {
        if (keys.empty() || random() % 10 < (grows ? 9 : 1)) {
          const FreeKey key{1 + random() % sizes, static_cast<uint32_t>(random() % 3), 1, random()};
          mine.insert(key);
          theirs.insert(key);
          keys.push_back(key);
        } else {
          std::swap(keys[random() % keys.size()], keys.back());
          mine.erase(keys.back());
          theirs.erase(keys.back());
          keys.pop_back();
        }
        const uint64_t wanted = random() % (sizes + 2);
        const auto found = mine.at_least(wanted);
        const auto expected = theirs.lower_bound({wanted, 0, 0, 0});
        ASSERT_EQ(found == mine.end(), expected == theirs.end());
        if (found == mine.end()) continue;
        ASSERT_EQ(found->address, expected->address);
        if (expected == theirs.begin() || i % 16 != 0) continue;
        auto before = found;
        ASSERT_EQ((--before)->address, std::prev(expected)->address);
      }
      expect_same(mine, theirs);
    }
  }
}

TEST(FreeSet, KeepsTheOrderOfAFewBlocks) { change_at_random(100, 20, 1); }
TEST(FreeSet, KeepsTheOrderOfManyBlocksOfFewSizes) { change_at_random(20'000, 5, 2); }
TEST(FreeSet, KeepsTheOrderOfManyBlocksOfManySizes) { change_at_random(60'000, 1u << 30, 3); }

TEST(FreeSet, WhatIsThereTwiceIsThereOnceAndWhatIsNotThereChangesNothing) {
  FreeSet set;
  const FreeKey key{512, 0, 1, 4096}, other{512, 0, 2, 8192}, larger{1024, 0, 3, 0};
  set.erase(key);
  set.insert(key);
  set.insert(key);
  set.erase(other);
  set.erase(larger);
  EXPECT_EQ(set.begin()->address, 4096u);
  EXPECT_TRUE(++set.begin() == set.end());
  set.erase(key);
  EXPECT_TRUE(set.empty());
  EXPECT_TRUE(set.begin() == set.end());
}

}  // namespace
}  // namespace gpumemprof

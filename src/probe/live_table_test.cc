#include "probe/live_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <thread>
#include <unordered_map>
#include <vector>

namespace gpumemprof::probe {
namespace {

/// The levels stay mapped: a table lives as long as its process.
LiveTable* new_table() {
  static std::vector<std::unique_ptr<LiveTable>> tables;
  return tables.emplace_back(std::make_unique<LiveTable>()).get();
}

uint64_t address_of(uint64_t i) { return 0x7f0000000000 + i * 64; }

TEST(LiveTable, GivesBackWhatWasPutOnce) {
  LiveTable* table = new_table();
  Block old, out;
  EXPECT_EQ(table->put(64, {1000, 7, 3}, &old), LiveTable::kPut);
  ASSERT_TRUE(table->take(64, &out));
  EXPECT_EQ(out.size_bytes, 1000u);
  EXPECT_EQ(out.holder, 7u);
  EXPECT_EQ(out.device, 3u);
  EXPECT_FALSE(table->take(64, &out));
  EXPECT_FALSE(table->take(128, &out));
}

TEST(LiveTable, FindsWithoutTaking) {
  LiveTable* table = new_table();
  Block old, out;
  EXPECT_FALSE(table->find(64, &out));
  table->put(64, {1000, 7, 3}, &old);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(table->find(64, &out));
    EXPECT_EQ(out.holder, 7u);
  }
  EXPECT_TRUE(table->take(64, &out));
  EXPECT_FALSE(table->find(64, &out));
}

TEST(LiveTable, MapsNothingBeforeTheFirstBlock) {
  LiveTable* table = new_table();
  Block out;
  EXPECT_FALSE(table->take(64, &out));
  EXPECT_EQ(table->level_count(), 0u);
}

TEST(LiveTable, AnAddressThatIsThereIsReplacedAndTold) {
  LiveTable* table = new_table();
  Block old{}, out;
  table->put(64, {1000, 1, 0}, &old);
  EXPECT_EQ(table->put(64, {2000, 2, 0}, &old), LiveTable::kReplaced);
  EXPECT_EQ(old.size_bytes, 1000u);
  ASSERT_TRUE(table->take(64, &out));
  EXPECT_EQ(out.size_bytes, 2000u);
  EXPECT_FALSE(table->take(64, &out));
}

TEST(LiveTable, AnAddressInALaterLevelIsFoundAgainAfterRoomCameBefore) {
  // More than eight addresses of one bucket of the first level; the rest must be in the second.
  LiveTable* table = new_table();
  std::vector<uint64_t> same;
  for (uint64_t i = 1; same.size() < 12; ++i) {
    if (i * 64 * 0x9e3779b97f4a7c15u >> (64 - kFirstLevelBits) == 5) same.push_back(i * 64);
  }
  Block old, out;
  for (uint64_t a : same) ASSERT_EQ(table->put(a, {a, 0, 0}, &old), LiveTable::kPut);
  EXPECT_EQ(table->level_count(), 2u);
  ASSERT_TRUE(table->take(same[0], &out));
  EXPECT_EQ(table->put(same[11], {99, 0, 0}, &old), LiveTable::kReplaced);
  EXPECT_EQ(old.size_bytes, same[11]);
  ASSERT_TRUE(table->take(same[11], &out));
  EXPECT_EQ(out.size_bytes, 99u);
  for (size_t i = 1; i < 11; ++i) {
    ASSERT_TRUE(table->take(same[i], &out));
    EXPECT_EQ(out.size_bytes, same[i]);
  }
}

TEST(LiveTable, AMillionRandomStepsAgreeWithAHashMap) {
  LiveTable* table = new_table();
  std::unordered_map<uint64_t, uint64_t> model;
  std::mt19937_64 random(1);
  Block old, out;
  for (int i = 0; i < 1000000; ++i) {
    uint64_t address = address_of(random() % 300000), size = random();
    auto known = model.find(address);
    if (known == model.end()) {
      ASSERT_EQ(table->put(address, {size, 0, 0}, &old), LiveTable::kPut);
      model[address] = size;
    } else {
      ASSERT_TRUE(table->take(address, &out));
      ASSERT_EQ(out.size_bytes, known->second);
      model.erase(known);
    }
  }
  for (auto [address, size] : model) {
    ASSERT_TRUE(table->take(address, &out));
    ASSERT_EQ(out.size_bytes, size);
  }
}

TEST(LiveTable, TenMillionLiveBlocksAreAllKnown) {
  LiveTable* table = new_table();
  Block old, out;
  constexpr uint64_t kCount = 10'000'000;
  for (uint64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(table->put(address_of(i), {i + 1, 0, 0}, &old), LiveTable::kPut);
  }
  uint64_t sum = 0;
  for (uint64_t i = kCount; i-- > 0;) {
    ASSERT_TRUE(table->take(address_of(i), &out));
    sum += out.size_bytes;
  }
  EXPECT_EQ(sum, kCount * (kCount + 1) / 2);
}

TEST(LiveTable, ThreadsThatPutAndTakeAtOnceLoseNothing) {
  LiveTable* table = new_table();
  static constexpr uint64_t kEach = 200000;
  std::vector<std::thread> threads;
  std::vector<uint64_t> missing(8, 0);
  for (uint64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Block old, out;
      // Addresses of the threads lie between each other, so their buckets are the same ones.
      for (uint64_t i = 0; i < kEach; ++i) {
        table->put(address_of(i * 8 + t), {i * 8 + t, 0, 0}, &old);
        if (i % 3 != 0) missing[t] += !table->take(address_of(i * 8 + t), &out);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (uint64_t m : missing) EXPECT_EQ(m, 0u);
  Block out;
  for (uint64_t i = 0; i < kEach * 8; ++i) {
    bool is_live = i / 8 % 3 == 0;
    ASSERT_EQ(table->take(address_of(i), &out), is_live) << i;
    if (is_live) {
      ASSERT_EQ(out.size_bytes, i);
    }
  }
}

TEST(LiveTable, AForkedChildBeginsEmptyAndTheParentKeepsAll) {
  LiveTable* table = new_table();
  Block old, out;
  for (uint64_t i = 0; i < 1000; ++i) table->put(address_of(i), {i, 0, 0}, &old);
  pid_t child = fork();
  if (child == 0) {
    bool is_good = true;
    for (uint64_t i = 0; i < 1000; ++i) is_good &= !table->take(address_of(i), &out);
    is_good &= table->put(address_of(1), {5, 0, 0}, &old) == LiveTable::kPut;
    is_good &= table->take(address_of(1), &out) && out.size_bytes == 5;
    _exit(is_good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  for (uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(table->take(address_of(i), &out));
    ASSERT_EQ(out.size_bytes, i);
  }
}

}  // namespace
}  // namespace gpumemprof::probe

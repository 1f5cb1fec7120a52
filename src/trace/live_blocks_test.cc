// Blocks by address and by number, against a plain map.
#include "trace/live_blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "trace/live_state_apply.h"
#include "trace/naive_state_for_tests.h"

namespace gpumemprof {
namespace {

TEST(LiveBlocks, AreThoseOfAPlainMapAndKeepTheirNumbers) {
  std::mt19937_64 random(7);
  LiveBlocks blocks;
  struct Known {
    LiveBlock block;
    uint32_t number;
  };
  std::map<uint64_t, Known> plain;
  size_t most = 0;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t address = random() % 400 * 512;
    const auto known = plain.find(address);
    if (random() % 2 == 0) {
      const LiveBlock block{random() % 1000, random(), 1, 2};
      const LiveBlocks::Put put = blocks.put(address, block);
      ASSERT_EQ(put.is_new, known == plain.end());
      if (put.is_new)
        plain[address] = {block, put.number};
      else
        ASSERT_EQ(put.number, known->second.number);
    } else {
      const uint32_t number = blocks.take(address);
      ASSERT_EQ(number, known == plain.end() ? LiveBlocks::kNoNumber : known->second.number);
      if (known != plain.end()) plain.erase(known);
    }
    most = std::max(most, plain.size());
  }
  ASSERT_EQ(blocks.size(), plain.size());
  EXPECT_EQ(blocks.number_count(), most);
  std::set<uint32_t> numbers;
  for (const auto& [address, known] : plain) {
    ASSERT_NE(blocks.find(address), nullptr);
    EXPECT_EQ(blocks.find(address)->time_ns, known.block.time_ns);
    EXPECT_EQ(blocks.number_at(address), known.number);
    numbers.insert(known.number);
  }
  EXPECT_EQ(numbers.size(), plain.size());
  EXPECT_EQ(blocks.find(1), nullptr);
  EXPECT_EQ(blocks.number_at(1), LiveBlocks::kNoNumber);
}

TEST(LiveBlocks, TheNumbersOfABatchNameTheBlockThatAnEventBeginsOrEnds) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const std::vector<EventRow> rows = random_rows(seed);
    EventBatch batch;
    for (const EventRow& row : rows) append(&batch, row);
    LiveState state;
    LiveObserver none;
    std::vector<uint32_t> numbers;
    state.apply_observed(batch, none, &numbers);
    ASSERT_EQ(numbers.size(), rows.size());
    std::map<std::pair<uint16_t, uint32_t>, uint64_t> address_of;  // of a device's live numbers
    std::set<std::pair<uint16_t, uint64_t>> live;
    for (size_t i = 0; i < rows.size(); ++i) {
      const std::pair block(batch.device[i], batch.address[i]);
      const std::pair number(batch.device[i], numbers[i]);
      if (rows[i].action == Action::kAlloc) {
        // A missed free leaves the number at its address; a live block's is never given again.
        if (live.contains(block))
          ASSERT_EQ(address_of.at(number), batch.address[i]);
        else
          ASSERT_TRUE(address_of.emplace(number, batch.address[i]).second);
        live.insert(block);
      } else if (is_free(rows[i].action) && live.contains(block)) {
        ASSERT_EQ(address_of.at(number), batch.address[i]);
        address_of.erase(number), live.erase(block);
      } else {
        ASSERT_EQ(numbers[i], LiveBlocks::kNoNumber);
      }
    }
  }
}

}  // namespace
}  // namespace gpumemprof
